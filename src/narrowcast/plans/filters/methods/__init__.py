"""Where filters go: exactly, at a price each, or by flips."""
