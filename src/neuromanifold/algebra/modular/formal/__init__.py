"""Formal functions as elements of a field: their relations, and what each has to be shown."""
