"""Whether two files hold one function: to rounding, exactly, and where they part."""
