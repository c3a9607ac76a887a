"""Channel plans judged from their tables alone."""
