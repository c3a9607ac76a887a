"""How the pieces of a network plan are made: sites, backbone channels, filters, and all of it together."""
