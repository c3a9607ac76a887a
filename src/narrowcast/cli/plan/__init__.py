"""`narrowcast plan`: one command per kind of plan."""
