"""Query merging: many overlapping range queries answered by few. `api` is `narrowcast.queries`."""
