"""Filter placement on a multicast tree. `api` is `narrowcast.filters`."""
