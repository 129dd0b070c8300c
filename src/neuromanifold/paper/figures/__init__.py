"""Figures: result records to matplotlib figures, built without pyplot's global state."""
