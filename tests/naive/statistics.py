"""The measured statistics by their definitions: every profile asked of SQLite, the rest plain pandas and NumPy."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np
import pandas as pd


def incidence(messages: pd.DataFrame, profiles: list[str]) -> np.ndarray:
    """Whether each message matches each profile, by SQLite's WHERE."""
    database = sqlite3.connect(":memory:")
    database.execute("PRAGMA case_sensitive_like = ON")
    attributes = messages.drop(columns=["ts"])
    attributes.insert(0, "_n", np.arange(len(messages)))
    attributes.to_sql("messages", database, index=False)
    found = np.zeros((len(messages), len(profiles)), bool)
    for i, profile in enumerate(profiles):
        rows = database.execute(f"SELECT _n FROM messages WHERE {profile}").fetchall()
        found[[row[0] for row in rows], i] = True
    database.close()
    return found


def weights(messages: pd.DataFrame, half_life_s: float | None, window_s: float | None) -> np.ndarray:
    """Plain decay weights: no rounding."""
    age = ((messages.ts.max() - messages.ts) / pd.Timedelta(seconds=1)).fillna(0.0).to_numpy()
    weight = np.ones(len(age)) if half_life_s is None else 0.5 ** (age / half_life_s)
    return weight if window_s is None else np.where(age > window_s, 0.0, weight)


def statistics(
    messages: pd.DataFrame,
    subscriptions: pd.DataFrame,
    *,
    key: str | None,
    half_life_s: float | None = None,
    window_s: float | None = None,
) -> dict[str, Any]:
    """Every table that `measure` makes from messages and subscriptions, as dictionaries."""
    profiles = sorted(set(subscriptions.profile))
    match = incidence(messages, profiles)
    weight = weights(messages, half_life_s, window_s)
    seconds = (messages.ts.max() - messages.ts.min()) / pd.Timedelta(seconds=1)
    size = messages["size"].fillna(0).to_numpy(float)
    own = weight @ match
    together = (match * weight[:, None]).T @ match
    if key is None:
        kinds = [tuple(np.flatnonzero(row).tolist()) for row in match]
        names = {members: f"class{i:07d}" for i, members in enumerate(sorted(set(kinds) - {()}), 1)}
        flow = pd.Series([names.get(members) for members in kinds])
    else:
        flow = messages[key]
    pairs = sorted({(f, i) for i in range(len(profiles)) for f in set(flow[match[:, i]].dropna())})
    held = subscriptions.groupby("profile").subscriber.apply(lambda s: sorted(set(s))).to_dict()
    interest = sorted({(f, s) for f, i in pairs for s in held[profiles[i]]})
    audience: dict[str, set[str]] = {}
    for f, s in interest:
        audience.setdefault(f, set()).add(s)
    counts = flow.value_counts()
    sets: dict[tuple[str, ...], list[str]] = {}
    for f in sorted(audience):
        sets.setdefault(tuple(sorted(audience[f])), []).append(f)
    return {
        "profiles": profiles,
        "profile_rates": {
            i: (match[:, i].sum(), size @ match[:, i], match[:, i].sum() / seconds) for i in range(len(profiles))
        },
        "selectivity": {i: (own[i], own[i] / weight.sum()) for i in range(len(profiles))},
        "overlap": {
            (i, j): (together[i, j], together[i, j] / own[i], together[i, j] / own[j])
            for i, j in zip(*np.nonzero(np.triu(together, 1)), strict=True)
        },
        "flows": {f: (n, n / seconds, size[(flow == f).to_numpy()].sum()) for f, n in counts.items()},
        "flow_profile": pairs,
        "interest": interest,
        "flow_audience": {f: flows[0] for flows in sets.values() for f in flows},
        "audiences": {flows[0]: (len(flows), list(who), counts[flows].sum() / seconds) for who, flows in sets.items()},
    }
