"""What is redundant in a file, what its heads look like, the proof of it and the page."""
