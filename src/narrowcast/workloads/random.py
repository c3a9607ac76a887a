"""Users without taste: the hard case, where no two interests have anything in common."""

from __future__ import annotations

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import frozen
from narrowcast.workloads.checks import generator, whole
from narrowcast.workloads.checks import share as a_share
from narrowcast.workloads.draw import distinct_ranks
from narrowcast.workloads.turn import turn


def random(
    flows: int = 10000, users: int = 250, share: float = 0.03, seed: int = 0, *, names: bool = False
) -> Interest:
    """Each user picks round(share·flows) distinct flows, all equally likely; all rates are 1 (the hybrid paper, §5).

    Nothing correlates, so clustering has little to find: a floor to measure other workloads against.
    Time and memory are linear in the pairs chosen.

    >>> interest = random(flows=200, users=5, share=0.1, seed=3)
    >>> interest.n_pairs, interest.by_user[0].tolist()
    (100, [0, 20, 40, 60, 80, 100])
    """
    whole("flows", flows, low=1, high=2**31 - 1)
    whole("users", users, low=1)
    m = int(np.floor(a_share("share", share) * flows + 0.5))
    if m == 0:
        raise InputError(
            f"share must be at least one of {flows} flows, got {share}: none at all", name="share", got=share
        )
    rng = generator(seed)
    drawn = np.empty((users, m), np.int32)
    for row, part in distinct_ranks(rng, users, m, flows, 0.0):
        drawn[row : row + len(part)] = part
    offsets, audience = turn(drawn, flows)
    return Interest(
        frozen(offsets),
        frozen(audience.astype(np.int64)),
        frozen(np.ones(flows)),
        users,
        tuple(f"flow{k}" for k in range(flows)) if names else None,
        tuple(f"user{u}" for u in range(users)) if names else None,
    )
