"""The block: what a configuration says about a transformer, its function, its spaces."""
