"""What each primitive of JAX does to residues, one module a kind."""
