"""Numbers in the expressions, the same for both evaluations."""

import numpy as np

LENGTH = 2
MIX = ((2.0, -1.0), (0.5, 3.0))
SINGULAR = ((1.0, 2.0), (2.0, 4.0))
NOISY = (1.0, float(np.cos(np.pi / 2)))
STEPS = (0.4, 0.9)
