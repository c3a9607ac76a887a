"""The report of a channels plan."""

from narrowcast.plans.channels.report.mine import amounts
from narrowcast.plans.channels.report.picture import picture
from narrowcast.plans.channels.report.sections import channels_report, hybrid_report
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.reports.parts import Report
from narrowcast.reports.whatif import Whatif

__all__ = ["amounts", "picture", "report"]


def report(plan: ChannelsPlan, whatif: Whatif | None) -> Report:
    """What receivers throw away and who pays for it; where unicast may be used, one cost for both ways."""
    return channels_report(plan, whatif) if plan.weights is None else hybrid_report(plan, whatif)
