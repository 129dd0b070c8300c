"""Square roots mod p: points where every radicand is a square, and that each is a new root."""
