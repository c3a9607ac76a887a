"""What adapting is worth on a commuter's day: adapting, planning anew every hour, never, and an oracle; ten seeds.

    python benchmarks/quality/adapt.py [--seeds 10] [--first 0] [--users 300] [--effort 0.2] [--no-oracle]

Excess is what receivers filter in vain, in messages of the day; total has what they wanted in it as well; each against
planning anew every hour. Moves are flows that change their session or group, numbers made to agree first. The
oracle plans every hour for what will come. `effort` was chosen on seeds 0 to 2: judge it by others.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import pairwise

import numpy as np
from studies.following import Account, Follow, account, adapting, hourly, never, oracle

from narrowcast.adapt.decide import Policy
from narrowcast.model.demand import Demand
from narrowcast.plans.channels.replan import ChannelSettings, ContinuedChannels
from narrowcast.workloads import commuter
from narrowcast.workloads.commuter import watched


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seeds", type=int, default=10)
    asked.add_argument("--first", type=int, default=3)
    asked.add_argument("--users", type=int, default=300)
    asked.add_argument("--effort", type=float, default=Policy().effort)
    asked.add_argument("--no-oracle", action="store_true")
    given = asked.parse_args()
    policy = Policy(effort=given.effort)
    heads = f"{'moves':>6} {'share':>6} {'joins':>6} {'plans':>5} {'cpu s':>6}"
    print(f"{'seed':>4} {'way':>9} {'excess':>7} {'total':>7} {heads}")
    cost, share = [], []
    seeds = range(given.first, given.first + given.seeds)
    for seed in seeds:
        demands = list(watched(commuter(users=given.users, seed=seed), seed=seed))
        wanted = useful(demands)
        begin = ContinuedChannels.begin(demands[0], ChannelSettings(12, 60, seed=seed))
        ways: dict[str, Follow] = {"hourly": hourly(), "adapting": adapting(policy), "never": never}
        if not given.no_oracle:
            ways["oracle"] = oracle(demands)
        found: dict[str, Account] = {}
        for name, follow in ways.items():
            began = time.process_time()
            found[name] = each = account(begin, demands, follow)
            base = found["hourly"]
            ratio, part = each.cost / base.cost, each.moves / max(base.moves, 1)
            whole = (each.cost + wanted) / (base.cost + wanted)
            spent = time.process_time() - began
            told = f"{each.moves:6} {part:6.1%} {each.joins:6} {len(each.times):5} {spent:6.0f}"
            print(f"{seed:>4} {name:>9} {ratio:7.3f} {whole:7.3f} {told}", flush=True)
        cost.append(found["adapting"].cost / found["hourly"].cost)
        share.append(found["adapting"].moves / max(found["hourly"].moves, 1))
        print(f"{'':>4} {'mean':>9} {np.mean(cost):7.3f} {'':7} {'':6} {np.mean(share):6.1%}", flush=True)
    still = quiet(seeds, given.users, policy)
    print(f"stationary and noisy: moves after the first hour in {still} of {given.seeds} days")
    return 0 if np.mean(cost) <= 1.05 and np.mean(share) <= 0.20 and still == 0 else 1


def useful(demands: list[Demand]) -> float:
    """What everybody wanted of the day, at both levels: no plan can send less."""
    total = 0.0
    for now, later in pairwise(demands):
        interest = later.unseen.interest
        total += float((np.diff(interest.offsets) * interest.rates).sum()) * (later.time - now.time)
    return 2 * total


def quiet(seeds: range, users: int, policy: Policy) -> int:
    """Days without any drift on which something moved after the first hour."""
    found = 0
    for seed in seeds:
        demands = list(watched(commuter(users=users, seed=seed, swing=0.0), seed=seed))
        begin = ContinuedChannels.begin(demands[0], ChannelSettings(12, 60, seed=seed))
        found += any(at > 3600 + demands[0].time for at in account(begin, demands, adapting(policy)).times)
    return found


if __name__ == "__main__":
    sys.exit(main())
