"""Real transformers: files of weights, and what in them the function does not see."""
