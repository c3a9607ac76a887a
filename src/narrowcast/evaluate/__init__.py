"""What a plan costs and whether it is sound, recomputed from the definitions."""
