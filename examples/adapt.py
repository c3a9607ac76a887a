"""Adapting: people commute, interest swings across sites, and the plan follows where it is worth it."""

from narrowcast.adapt.decide import Policy
from narrowcast.adapt.loop import Loop
from narrowcast.adapt.timeline import summary
from narrowcast.plans.channels.replan import ChannelSettings, ContinuedChannels
from narrowcast.workloads import commuter
from narrowcast.workloads.commuter import watched

day = commuter(users=60, sites=4, topics=10, wishes=4, seed=1)
demands = list(watched(day, hours=12))
loop = Loop(ContinuedChannels.begin(demands[0], ChannelSettings(groups=5, sessions=16)), Policy(reorganise_s=None))

rows = list(loop.run(demands))
for row in rows:
    if row["replanned"]:
        print(f"{row['time'] / 3600:5.2f} h: cost {row['kept']:.0f} -> {row['now']:.0f}, {row['moves']} flows moved")
kept, now = (sum(row[name] for row in rows) for name in ("first", "now"))
found = summary(rows)
print(f"{found['replans']} re-plans, {found['moves']} moves, {1 - now / kept:.0%} below keeping the first plan")
