"""The geometry of one lightning layer: critical, singular and boundary points, and slices.

The neuromanifold of one layer is, up to a linear change of coordinates, the set of tables of
products α_m · ν_n of linear forms (prop-a.5): `segre` goes from weights to the table, `membership`
back. `classify` says what kind of point given weights are, by ranks; `ideal` and `tangent` find the
singular points without those theorems; `closedness` finds limits of functions whose weights
diverge; `slices` cuts surfaces out of the neuromanifold that can be drawn.
"""
