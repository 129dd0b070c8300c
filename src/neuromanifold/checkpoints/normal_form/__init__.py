"""One file for all weights of a function: norms folded, a frame for every head, and back."""
