"""The report: a plan as one HTML page that works offline. A line per kind of plan here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from narrowcast.model.plan import Plan
from narrowcast.web.channels import channels_report, hybrid_report
from narrowcast.web.filters import filters_report
from narrowcast.web.page import page
from narrowcast.web.parts import Report
from narrowcast.web.queries import queries_report
from narrowcast.web.semantic import semantic_report
from narrowcast.web.sweep import quick_sweep
from narrowcast.web.timeline import timeline_section
from narrowcast.web.whatif import Whatif, parse_whatif, read_whatif

REPORTS: dict[str, Callable[[Plan, Whatif | None], Report]] = {
    "channels": channels_report,
    "hybrid": hybrid_report,
    "filters": filters_report,
    "queries": queries_report,
    "semantic": semantic_report,
}


def report_page(plan: Plan, whatif: Whatif | None = None, timeline: Sequence[Mapping[str, Any]] = ()) -> str:
    """The whole page for a plan; with the what-if figure if there is something to ask, and how adapting went."""
    report = REPORTS[plan.kind](plan, whatif)
    if timeline:
        first, *others = report.sections
        report = replace(report, sections=(first, timeline_section(timeline), *others))
    return page(report)


__all__ = ["REPORTS", "Report", "Whatif", "page", "parse_whatif", "quick_sweep", "read_whatif", "report_page"]
