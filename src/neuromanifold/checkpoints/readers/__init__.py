"""Formats of weights files, one module each; a reader gives `Contents` and runs nothing.

Readers trust nothing that a file says about itself: every offset, length and shape is checked
against the bytes that are there before anything is allocated.
"""
