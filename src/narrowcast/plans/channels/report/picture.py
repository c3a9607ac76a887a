"""A channels plan drawn: who gets what by flooding and by this plan, side by side."""

from __future__ import annotations

from narrowcast.plans.channels.report.matrix import matrix_pictures
from narrowcast.plans.channels.report.served import served
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.reports.picture import Picture
from narrowcast.reports.text import e, percent, plural

WIDE, TALL, GAP = 460, 320, 24


def picture(plan: ChannelsPlan) -> Picture:
    """The matrix of the interest before and after: rows are subscribers, columns flows as wide as their rate."""
    read = served(plan)
    before, after, small = matrix_pictures(read)
    crisp = ' image-rendering="optimizeSpeed"' if small else ""
    drawn = "".join(
        f'<text class="said" x="{x}" y="14">{e(title)}</text><image x="{x}" y="24" width="{WIDE}" height="{TALL}" '
        f'preserveAspectRatio="none"{crisp} href="{source}"/>'
        f'<rect class="axis" fill="none" x="{x}" y="24" width="{WIDE}" height="{TALL}"/>'
        for x, title, source in ((0, "Before: flooding", before), (WIDE + GAP, "After: this plan", after))
    )
    across, tall = 2 * WIDE + GAP, TALL + 30
    label = f"{percent(read.useful)} of what arrives is wanted, up from {percent(read.useful_flooded)}"
    drawing = (
        f'<svg class="drawing" data-plot="matrix" role="img" aria-label="{e(label)}" viewBox="0 0 {across} {tall}">'
        f"{drawn}</svg>"
    )
    there = plural(int((read.group_rate > 0).sum()), "group")
    apart = (("apart", "wanted, by unicast"),) if read.unicast.any() else ()
    keys = (("wanted", "wanted"), *apart, ("waste", "arrives unwanted"), ("nothing", "does not arrive"))
    told = "A row for each subscriber, a column for each flow, as wide as its rate. After planning, flows are sorted "
    told += "by group and session, subscribers by the groups they use."
    return Picture(f"{label}: {there}", drawing, keys, told)
