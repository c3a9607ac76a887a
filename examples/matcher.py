"""The matcher: a table of messages against many profiles at once."""

import numpy as np
import pyarrow as pa

import narrowcast as nc

symbols = ["IBM", "MSFT", "ORCL", "SAP"]
profiles = [f"symbol = '{s}' AND price > {limit}" for s in symbols for limit in (50, 100, 150)]
profiles.append("price IS NULL")

rng = np.random.default_rng(1)
messages = pa.table(
    {
        "symbol": rng.choice(symbols, 1000),
        "price": pa.array(rng.uniform(0, 200, 1000), mask=rng.random(1000) < 0.05),
    }
)

rows, cols = nc.Matcher(profiles).match(messages)
for profile, count in zip(profiles, np.bincount(cols, minlength=len(profiles)), strict=True):
    print(f"{count:5}  {profile}")
