"""Discovery: which vector fields on the weights of a network are symmetries that nobody declared.

A *vector field* of a certain form (`vector_fields`) is a symmetry if it lies in the kernel of the
Jacobian at all weights: linear equations, one for each row at random weights (`moving`), whose
solutions are an *algebra* (`symmetry_algebra`). `blocks` splits an algebra into groups with names.
What is of that form only where gains are 1, or with their reciprocals, is looked for on `slices`
and along `gains`. `discover` puts these questions one after the other.
"""
