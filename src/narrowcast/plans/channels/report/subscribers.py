"""How subscribers fare under a channels or hybrid plan: the matrix before and after, and the worst served."""

from __future__ import annotations

import numpy as np

from narrowcast.plans.channels.report.matrix import matrix_pictures
from narrowcast.plans.channels.report.served import Served
from narrowcast.reports.parts import Section, columns_chart, figure, folded, legend, table
from narrowcast.reports.text import e, number, percent, plural, short

WORST = 10
BINS = 20


def matrix_section(read: Served) -> Section:
    """Who gets what: flooding beside this plan."""
    before, after, small = matrix_pictures(read)
    style = "matrix crisp" if small else "matrix"
    n = read.interest
    texts = (
        f"Interest of {n.n_users} subscribers in {n.n_flows} flows, in the order of the input: everything arrives.",
        f"The same, flows by group and session: {percent(read.arrives)} of what flooding brings still arrives, "
        f"and {percent(read.useful)} of that is wanted.",
    )
    pictures = "".join(
        f'<div><h3>{title}</h3><img class="{style}" data-plot="matrix" src="{source}" alt="{e(text)}"></div>'
        for title, source, text in zip(("Before: flooding", "After: this plan"), (before, after), texts, strict=True)
    )
    apart = [("apart", "wanted, by unicast")] if read.unicast.any() else []
    keys = legend([("wanted", "wanted"), *apart, ("waste", "arrives unwanted"), ("nothing", "does not arrive")])
    lead = (
        "A row for every subscriber, a column for every flow, as wide as its rate: areas are traffic. After planning, "
        "flows are sorted by group and session, subscribers by the groups they use."
    )
    return Section("matrix", "Who gets what", f'{keys}<div class="pair">{pictures}</div><p id="hover-says"></p>', lead)


def worst_section(read: Served) -> Section:
    """The ten who pay most for what they do not want, the flows that cause it, and how all the others fare."""
    order = np.argsort(-read.excess, kind="stable")[:WORST]
    order = order[read.excess[order] > 0]
    if not order.size:
        return Section("worst", "Worst served", "<p>Nobody gets anything that is not wanted.</p>")
    columns = ("subscriber", "wants", "gets", "wanted of it", "groups", "fastest unwanted flows")
    worst = table(columns, [_row(read, int(u)) for u in order], numbers=columns[1:5], stack=True)
    share = float(read.excess[order].sum()) / (float(read.excess.sum()) or 1.0)
    lead = (
        f"The {plural(order.size, 'subscriber')} whose filtering costs most beyond what they want: {percent(share)} of "
        "all excess. Rates in messages a second."
    )
    return Section("worst", "Worst served", worst + _everybody(read), lead)


def _row(read: Served, user: int) -> tuple[object, ...]:
    users, flows = read.interest.user_names or (), read.interest.flow_names or ()
    causes = (f"{short(flows[k])} ({number(rate)}, group {read.group[k]})" for k, rate in read.culprits(user))
    wants, gets = float(read.wanted[user]), float(read.received[user])
    share = percent(wants / gets if gets else 1.0)
    return short(users[user]), number(wants), number(gets), share, read.joins[[user]].nnz, ", ".join(causes)


def _everybody(read: Served) -> str:
    """Subscribers by the share of what they get that they want."""
    there = read.received > 0
    share = np.clip(read.wanted[there] / read.received[there], 0.0, 1.0)
    counts = np.bincount(np.minimum((share * BINS).astype(int), BINS - 1), minlength=BINS)
    spans = [f"{100 * i // BINS} to {100 * (i + 1) // BINS} %" for i in range(BINS)]
    titles = [f"{span} wanted: {plural(int(count), 'subscriber')}" for span, count in zip(spans, counts, strict=True)]
    middle = float(np.median(share)) if share.size else 0.0
    half = f"{percent(middle)} of it or more" if middle < 1 else "all of it"
    label = f"Subscribers by the share of what arrives that they want; half of them want {half}."
    chart = columns_chart(label, [float(c) for c in counts], titles, under=("0 % wanted", "100 % wanted"))
    rows = [(span, f"{count:,}") for span, count in zip(spans, counts, strict=True)]
    as_table = folded("As a table", table(("wanted", "subscribers"), rows, numbers=("subscribers",)))
    return f"<h3>How well everybody is served</h3>{figure(chart, label)}{as_table}"
