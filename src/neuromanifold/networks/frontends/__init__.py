"""Networks written in other frameworks, as JAX functions of named weights.

Each framework is imported by its own module here and nowhere else, and only when it is asked for.
"""
