"""Watch demand drift, re-plan where it pays, and move to the new epoch without losing a message."""
