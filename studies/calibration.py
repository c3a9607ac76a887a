"""What the two filters cost a receiver, measured here on real multicast: Tock et al., figure 5.

This measures the machine it runs on, so its points run one after the other and nothing else beside them, and
two runs differ as two measurements do. Multicast stays on the loopback interface.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from narrowcast.plans.channels import api as channels
from studies.experiment import Claim, Experiment, Point, Rows
from studies.figures import Figure, Lines, curves, mean

PAPER = "flows, sessions, groups"
TYPICAL = 8  # messages per packet, the paper's choice
DOMAIN = 92


def _points_5(quick: bool) -> Sequence[Point]:
    if quick:
        return [{"h": [1, TYPICAL], "seconds": 0.3, "frames_s": 800.0, "seed": 0}]
    return [{"h": [1, 2, 4, TYPICAL, 16, 64], "seconds": 0.6, "frames_s": 1500.0, "seed": seed} for seed in range(10)]


def _run_5(point: Point) -> Rows:
    from narrowcast.deliver.processes.calibration import measure
    from narrowcast.deliver.transport.dds.config import DdsSettings

    samples = measure(
        DdsSettings(domain=DOMAIN), aggregation=point["h"], frames_s=point["frames_s"], seconds=point["seconds"]
    )
    taken = np.array([(s.accepted, s.discarded, 1e6 * s.cpu, s.h) for s in samples])
    model = channels.calibrate(*taken.T)
    rows = []
    for h in point["h"]:
        here = channels.calibrate(*taken[taken[:, 3] == h].T)
        alone, given = here.at(h), {"seed": point["seed"], "h": h, "residual": model.residual, "alone": here.residual}
        for name, price, fitted in zip(("α", "β"), alone, model.at(h), strict=True):
            rows.append({**given, "price": name, "measured": float(price), "fitted": float(fitted)})
    return rows


def _claims_5(rows: Rows) -> Sequence[Claim]:
    hs = sorted({r["h"] for r in rows})
    at = {(name, h): mean(rows, "measured", price=name, h=h) for name in ("α", "β") for h in hs}
    whole = {h: at["α", h] + at["β", h] for h in hs}
    left, share = mean(rows, "residual"), at["β", TYPICAL] / at["α", TYPICAL] if at["α", TYPICAL] > 0 else np.inf
    near = 0.5 <= share <= 2
    told = "; ".join(f"{name} {at[name, hs[0]]:.1f} → {at[name, hs[-1]]:.1f} µs" for name in ("α", "β"))
    return [
        Claim("messages that share a packet cost less to filter", "α and β fall with h",
              f"{told} per message from h = {hs[0]} to {hs[-1]}", whole[hs[-1]] < whole[hs[0]]),
        Claim("α(h) = α0 + α1/h and β(h) = β0 + β1/h fit what a receiver spends", "fit",
              f"the fit leaves {100 * left:.0f} % (root mean square)", left <= 0.1, "" if left <= 0.1 else
              f"tested: fitted for each h alone it leaves {100 * mean(rows, 'alone'):.0f} %, so that most of it is how "
              "unsteady a measurement of a fraction of a second is, not the form in h"),
        Claim(f"α ≈ β at h = {TYPICAL}, so that the second level pays", "α ≈ β ≈ 1", f"β/α = {share:.2f}", near,
              "" if near else "tested at every h: " + ", ".join(f"{at['β', h] / max(at['α', h], 1e-9):.1f} at {h}"
              for h in hs) + "; it depends on the implementation, as the paper says, and here another session's "
              "packets are dropped in C while messages are decoded and sorted by flow in Python"),
    ]  # fmt: skip


def _figures_5(rows: Rows) -> Sequence[Figure]:
    shown = curves(rows, "h", "measured", "price") | curves(rows, "h", "fitted", "price", lambda p: f"{p}, fitted")
    return [Lines("What filtering a message costs a receiver here", "messages per packet h", "CPU per message (µs)",
                  shown, log_x=True, log_y=True)]  # fmt: skip


EXPERIMENTS: dict[str, Experiment] = {
    "channels.fig5": Experiment(
        "Calibration of α and β",
        f"{PAPER}, figure 5",
        _points_5,
        _run_5,
        _claims_5,
        _figures_5,
        alone=True,
        needs={"cyclonedds": "narrowcast[dds]"},
    ),
}
