"""Certificates: exact dimensions with their evidence, verification, and float estimates.

The dimension of a neuromanifold (def-3) is the generic rank of the map from weights to functions.
A *certificate* bounds it from below by a rank over a prime field and from above by symmetries and
theorems; when the bounds meet it is proved. `ledger` says where every parameter goes,
`identifiable` what the function determines, `numeric` what floats can say, and `discovery` finds
symmetries that were not declared.

Nothing is imported here, so that asking for a formula does not load an array library.
"""
