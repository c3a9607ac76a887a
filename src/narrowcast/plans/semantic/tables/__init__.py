"""A semantic plan as the tables of its folder: written, and read back."""
