"""The papers' experiments, one file per paper, and what-if sweeps over a plan's budgets and prices."""

from narrowcast.studies import channels, filters, hybrid, queries, semantic
from narrowcast.studies.experiment import Claim, Experiment
from narrowcast.studies.run import Ran, run

EXPERIMENTS: dict[str, Experiment] = {
    **filters.EXPERIMENTS,
    **channels.EXPERIMENTS,
    **hybrid.EXPERIMENTS,
    **semantic.EXPERIMENTS,
    **queries.EXPERIMENTS,
}

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Ran", "run"]
