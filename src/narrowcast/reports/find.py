"""Looking for one's own: every flow, subscriber or what else a plan has, by name, and what the plan does to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from narrowcast.reports.parts import Section
from narrowcast.reports.text import e, seen

MOST = 20_000  # of each sort; beyond that a page grows too large to send


@dataclass(frozen=True)
class Findable:
    """Things of one sort: what one is called, what is told of each, and a row for each, its name first."""

    what: str
    told: Sequence[str]
    rows: Sequence[Sequence[object]]


def find_section(things: Sequence[Findable]) -> tuple[Section, list[dict[str, Any]]]:
    """The section, and what its script looks through: all words are made here."""
    sorts = " or ".join(filter(None, [", ".join(each.what for each in things[:-1]), things[-1].what]))
    more = "".join(
        f" {len(each.rows) - MOST:,} more are not in this page: narrowcast explain PLAN --{each.what} NAME."
        for each in things
        if len(each.rows) > MOST
    )
    body = (
        f'<div class="controls" role="search"><label for="find-name">Name</label><input type="search" id="find-name" '
        f'autocomplete="off" spellcheck="false" placeholder="{e(f"a {sorts}")}"></div>'
        '<p id="find-says" class="lead" role="status"></p><ul class="results" id="find-results"></ul>'
    )
    data = [
        {"what": each.what, "told": list(each.told), "rows": [[*map(seen, row)] for row in each.rows[:MOST]]}
        for each in things
    ]
    return Section(
        "find", "Find yours", body, f"What this plan does to one {sorts}: type a part of its name.{more}"
    ), data
