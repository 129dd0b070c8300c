"""Normal forms: one point for each orbit of the symmetries, and a hash of it."""
