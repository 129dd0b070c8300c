"""How far two models are apart where no gauge counts, and how near they can be brought."""
