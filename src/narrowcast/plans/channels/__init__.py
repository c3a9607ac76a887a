"""Channels: flows to sessions to multicast groups, with unicast where it is cheaper. `api` is `narrowcast.channels`."""
