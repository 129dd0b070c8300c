"""Transport: the symmetry that carries one point of a fiber to another, and the way there."""
