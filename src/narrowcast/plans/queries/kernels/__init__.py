"""The compiled loops of query merging."""
