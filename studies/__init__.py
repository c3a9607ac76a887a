"""The papers' experiments, one file per paper, and what-if sweeps over a plan's budgets and prices."""

from studies import calibration, channels, filters, hybrid, queries, real_interest, real_networks, said, semantic
from studies.experiment import Claim, Experiment
from studies.run import Ran, run

EXPERIMENTS: dict[str, Experiment] = {
    **filters.EXPERIMENTS,
    **channels.EXPERIMENTS,
    **calibration.EXPERIMENTS,
    **hybrid.EXPERIMENTS,
    **semantic.EXPERIMENTS,
    **queries.EXPERIMENTS,
    **said.EXPERIMENTS,
    **real_networks.EXPERIMENTS,
    **real_interest.EXPERIMENTS,
}

__all__ = ["EXPERIMENTS", "Claim", "Experiment", "Ran", "run"]
