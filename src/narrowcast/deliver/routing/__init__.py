"""A plan as the network obeys it: message to channels, subscription to channels, channel to address."""
