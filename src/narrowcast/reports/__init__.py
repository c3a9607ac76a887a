"""The report: a plan as one HTML page that works offline. A line per kind of plan here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from narrowcast.model.plan import Plan
from narrowcast.plans.channels.report.sections import channels_report, hybrid_report
from narrowcast.plans.filters.report import filters_report
from narrowcast.plans.queries.report import queries_report
from narrowcast.plans.semantic.report import semantic_report
from narrowcast.reports.page import page
from narrowcast.reports.parts import Report
from narrowcast.reports.sweep import quick_sweep
from narrowcast.reports.timeline import timeline_section
from narrowcast.reports.whatif import Whatif, parse_whatif, read_whatif

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
