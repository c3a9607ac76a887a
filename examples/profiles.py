"""Profiles: what a subscriber wants, and how two wishes compare."""

import narrowcast as nc

tech = nc.Profile.parse("sector = 'Technology' AND price > 100")
big = nc.Profile.parse("price > 50 AND venue IS NOT NULL")

message = {"symbol": "IBM", "sector": "Technology", "price": 101.5, "venue": None}
print("matches:", tech.matches(message), big.matches(message))  # a null is neither true nor false

print("50 covers 100:", nc.Profile.parse("price > 50").covers(tech))
print("overlap:", tech.overlaps(big))
print("only the first:", tech - big)

try:
    nc.Profile.parse("price > 100 && sector = 'Technology'")
except nc.errors.ProfileError as error:
    print("refused:", error)
    print(error.pointer())
