"""One adapter a family: between the tensors of a file and those of the block, bit for bit."""
