"""Channels: 2,000 symbols, 100 desks, 20 multicast groups. Which symbol goes where?"""

import narrowcast as nc

interest = nc.workloads.market(symbols=2000, users=100, share=0.05, seed=1)
plan = nc.channels.plan(interest, groups=20, sessions=100, seed=1)

print(f"{interest}: {plan.cost.relative:.1%} of flooding's waste")
for method in ("gf", "sf", "random"):
    other = nc.channels.plan(interest, groups=20, sessions=100, method=method, seed=1)
    print(f"{method:8} {other.cost.relative:.1%}")
