"""What every target hands back, and the tables that all of them have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from narrowcast.exports.layout import GroupLayout
from narrowcast.exports.options import Options
from narrowcast.exports.text import table
from narrowcast.model.plan import Plan


@dataclass(frozen=True)
class Files:
    """Texts by file name, and notes: what the target's limits are and what the hosts must have."""

    texts: dict[str, str]
    notes: tuple[str, ...] = ()


Writer = Callable[[Plan, Options], Files]
Cells = Sequence[object]


def tables(
    layout: GroupLayout,
    columns: Sequence[str],
    place: Callable[[int, int], Cells],
    *,
    apart: Callable[[str, str], Cells] | None = None,
    apart_columns: Sequence[str] = (),
) -> dict[str, str]:
    """`flows.csv`, `subscribers.csv` and, for a hybrid, `unicast.csv`: what an application looks up.

    `place(session, group)` gives the cells of a session at this target under `columns`; `apart(flow, subscriber)`
    those of a unicast pair.
    """
    where = {session: place(session, group) for session, group in layout.group_of_session.items()}
    head = ("session", "group", *columns)
    flows = ((f, l, layout.group_of_session[l], *where[l]) for f, l in layout.session_of_flow.items())
    takes = (
        (user, l, layout.group_of_session[l], *where[l]) for user, sessions in layout.takes.items() for l in sessions
    )
    found = {"flows.csv": table(("flow", *head), flows), "subscribers.csv": table(("subscriber", *head), takes)}
    if layout.unicast:
        pairs = ((flow, user, *(apart(flow, user) if apart else ())) for flow, user in layout.unicast)
        found["unicast.csv"] = table(("flow", "subscriber", *apart_columns), pairs)
    return found
