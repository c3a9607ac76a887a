"""Input tables taken in: good rows typed, bad rows quarantined."""
