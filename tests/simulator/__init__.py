"""A seeded simulator that owns time, network and disk, and runs the very parts that run in production.

    from simulator import Schedule, simulate

    outcome = simulate(Schedule.from_seed(7))
    assert outcome.verdict.sound and outcome.verdict.counts, outcome

The same seed gives the same run, event for event.
"""

from simulator.parts import Parts
from simulator.run import Outcome, simulate
from simulator.schedule import Schedule

__all__ = ["Outcome", "Parts", "Schedule", "simulate"]
