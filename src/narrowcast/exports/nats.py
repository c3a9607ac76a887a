"""NATS: a subject per flow under its session's, `nc.g<group>.s<session>.<flow>`, by the server's subject mapping.

Publishers send to `flow.<flow>` and know nothing of the plan; a subscriber takes whole sessions with one wildcard
each. NATS sends everything by unicast: sessions here save subscriptions, not copies.
"""

from __future__ import annotations

from narrowcast.errors import InputError
from narrowcast.exports.content_layout import any_layout
from narrowcast.exports.files import Files, tables
from narrowcast.exports.leaf_nodes import leaf_nodes
from narrowcast.exports.options import Options
from narrowcast.exports.text import table, token
from narrowcast.model.plan import Plan
from narrowcast.plans.filters.result import FiltersPlan

# The server's max_control_line is 4096 bytes: room for the verb, sizes and a reply subject beside the subject.
LONGEST_SUBJECT = 3072


def nats(plan: Plan, options: Options) -> Files:
    """`nats.conf` to include in the server's or an account's configuration, and everybody's subjects."""
    if isinstance(plan, FiltersPlan):
        return leaf_nodes(plan, options)
    layout, beside = any_layout(plan, options, "NATS")
    subjects = {
        flow: f"nc.g{layout.group_of_session[session]}.s{session}.{token(flow)}"
        for flow, session in layout.session_of_flow.items()
    }
    for flow, _ in layout.unicast:
        subjects.setdefault(flow, f"nc.u.{token(flow)}")
    for flow, subject in subjects.items():
        if len(subject) > LONGEST_SUBJECT:
            raise InputError(
                f"a NATS subject must have at most {LONGEST_SUBJECT} bytes, got {len(subject)} for flow {flow[:40]!r}…",
                name="flow",
            )
    found = tables(
        layout,
        ("subject",),
        lambda session, group: (f"nc.g{group}.s{session}.>",),
        apart=lambda flow, _: (subjects[flow],),
        apart_columns=("subject",),
    )
    mapping = ((flow, f"flow.{token(flow)}", subject) for flow, subject in subjects.items())
    found["subjects.csv"] = table(("flow", "publish", "subject"), mapping)
    lines = "".join(f'  "flow.{token(flow)}": "{subject}"\n' for flow, subject in subjects.items())
    most = max((len(sessions) for sessions in layout.takes.values()), default=0)
    notes = (
        f"a subscriber makes at most {most} subscriptions, one per session; the account's max_subscriptions must allow",
        "in flow names other characters than letters, digits, _ and - are written %XX in subjects",
    )
    return Files({"nats.conf": f"mappings: {{\n{lines}}}\n", **found, **beside}, notes)
