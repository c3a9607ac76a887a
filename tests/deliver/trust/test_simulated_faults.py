"""Full disks, revoked accounts, forged frames and restored logs together, simulated; and bugs that let somebody in."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from narrowcast.deliver.parts.coordinator import Coordinator
from simulator import Schedule, simulate
from simulator.parts import Parts


def faulty(seed: int) -> Schedule:
    drawn = Schedule.from_seed(seed)
    return replace(drawn, spy=True, revoked=seed % 3 > 0, sealed=True, full_disks=2, attack=0.3, restores=1)


def test_nobody_is_let_in_and_nothing_lost_by_full_disks_revocations_forged_frames_and_restored_logs() -> None:
    counts: Counter[str] = Counter()
    for seed in range(9):
        outcome = simulate(faulty(seed))
        assert outcome.good, (outcome, outcome.let_in)
        counts.update(outcome.counts)
    assert counts["full disk"] == 18
    assert counts["revocation"] == 6
    assert counts["restore"] == 9
    assert counts["spy opened"] > 20, "it saw nothing, so that it could not see too much"


class ForgetsRevocations(Coordinator):
    """Whoever once had an account keeps what it subscribed to."""

    def _note_account(self, name: str, record: dict[str, Any] | None) -> None:
        super()._note_account(name, record or self._accounts.get(name))

    def _bury(self, now: float) -> None:
        for seen in self._nodes.values():  # and is never taken for dead, which would end it too
            if seen.record is not None and seen.record.get("account") is not None:
                seen.changed = now
        super()._bury(now)


BUGS = {
    "gives keys of sessions to whoever wants some of them": Parts(kept_apart=lambda routing, entitled: []),
    "plans on for an account that is gone": Parts(coordinator=ForgetsRevocations),
}


@pytest.mark.parametrize("name", BUGS)
def test_a_planted_hole_is_found(name: str) -> None:
    for seed in range(60):
        if simulate(replace(faulty(seed), revoked=True), BUGS[name]).let_in:
            return
    pytest.fail(f"60 schedules did not notice a system that {name}")
