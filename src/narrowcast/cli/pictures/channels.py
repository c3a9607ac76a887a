"""A channels plan as a picture: what each group carries, and how much of it its members want."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from narrowcast.cli.pictures.page import COLOURS, new_page, save_picture

if TYPE_CHECKING:
    from narrowcast.plans.channels.result import ChannelsPlan

WANTED, UNASKED = COLOURS[2], COLOURS[1]


def groups_picture(plan: ChannelsPlan, path: Path) -> None:
    """A bar per group, the busiest first: messages a second that reach its members, wanted and unasked."""
    interest, group = plan.interest, plan.group_of_flow
    sent = group >= 0
    n = int(group.max(initial=-1)) + 1
    rate = np.bincount(group[sent], interest.rates[sent], minlength=n)
    members = np.bincount(plan.joins[1], minlength=n)
    of_pair = group[interest.flow_of_pair]
    by_group = (of_pair >= 0) & ~plan.by_unicast
    wanted = np.bincount(of_pair[by_group], interest.rates[interest.flow_of_pair][by_group], minlength=n)
    unasked = rate * members - wanted
    order = np.argsort(-(wanted + unasked), kind="stable")
    figure, axes = new_page(8, 4.5)
    axes.bar(range(n), wanted[order], color=WANTED, label="wanted")
    axes.bar(range(n), unasked[order], bottom=wanted[order], color=UNASKED, label="unasked")
    axes.set_xlabel("groups, the busiest first")
    axes.set_ylabel("messages a second to all members")
    axes.set_title(f"{n} groups: what their members get")
    axes.legend(frameon=False)
    save_picture(figure, path)
