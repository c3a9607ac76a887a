"""The decayed rate of each flow by its definition: what it weighs over what one message a second would weigh."""

from __future__ import annotations

import numpy as np
import pandas as pd

from naive.statistics import weights


def recent_rates(messages: pd.DataFrame, key: str, half_life_s: float) -> dict[str, float]:
    """Messages a second of each flow, those of long ago counting less."""
    span = (messages.ts.max() - messages.ts.min()) / pd.Timedelta(seconds=1)
    steps = 200_000
    ages = (np.arange(steps) + 0.5) * span / steps
    steady = float(np.sum(0.5 ** (ages / half_life_s)) * span / steps)  # ∫ of the weight over the log's time
    weight = pd.Series(weights(messages, half_life_s, None), index=messages.index)
    found: dict[str, float] = (weight.groupby(messages[key]).sum() / steady).to_dict()
    return found
