"""How channels on an overlay are found."""
