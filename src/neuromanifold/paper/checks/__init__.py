"""Checks: every statement of the registry tested by computation, with the evidence kept.

A check is a function of `quick` (a smaller grid) and a seed that returns a `Finding`: what was
compared, how it came out, and for a correction the counterexample to the printed version. `checks`
lists them by statement id, `run` turns findings into `Evidence`, which is all that reports show.
"""
