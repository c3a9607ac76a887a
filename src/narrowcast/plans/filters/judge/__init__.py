"""Filter plans judged from their tables alone."""
