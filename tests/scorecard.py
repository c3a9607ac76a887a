"""The scorecard: faults and attacks on the system, with clients and checkers of its own, as one table.

`make soak` runs all of it, which takes hours; `make soak SOAK=--quick` a small part of everything, in a few minutes.
The last rows are planted bugs: there the same faults and attacks must be seen to do harm.
"""

from __future__ import annotations

import argparse
import logging
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src"), str(ROOT)]

import pytest  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.table import Table  # noqa: E402

SKIPPED = pytest.skip.Exception


@dataclass(frozen=True)
class Score:
    """How often something was tried, and what was seen."""

    tried: int
    seen: str


@dataclass(frozen=True)
class Trial:
    """What is tried, in which sizes, and how. `run` raises if something is seen that must not be."""

    what: str
    quick: int
    full: int
    run: Callable[[Path, int], Score]


# Attacks.


def packets_inside(folder: Path, n: int) -> Score:
    from system.packets import assaulted, unharmed

    found = assaulted(folder, n)
    unharmed(found, n)
    return attacked(found)


def attacked(found: dict[str, Any]) -> Score:
    told = f"{found['refused']:,} refused at the subscriber; {found['received']:,} real messages arrived meanwhile"
    return Score(found["sent"], f"0 delivered, 0 silenced; {told}")


def packets_from_afar(folder: Path, n: int) -> Score:
    from system.packets import assaulted_from_afar, unharmed

    found = assaulted_from_afar(folder, n)
    unharmed(found, n)
    return attacked(found)


def beyond_entitlement(folder: Path, n: int) -> Score:
    from system.test_accounts import assaulted

    found = assaulted(folder, n, domain=62)
    return Score(
        sum(found["tried"].values()),
        f"0 succeeded; {found['audited']:,} in the audit; revoked in {found['revoked after']:.1f} s",
    )


# Faults.


def one_schedule(seed: int) -> tuple[bool, str, dict[str, int]]:
    from simulator import Schedule, simulate

    outcome = simulate(Schedule.from_seed(seed))
    return (
        outcome.good,
        str(outcome),
        {k: outcome.counts.get(k, 0) for k in ("attack", "restore", "full disk", "revocation")},
    )


def schedules(folder: Path, n: int) -> Score:
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(2) as pool:
        for good, what, some in pool.map(one_schedule, range(2_000_000, 2_000_000 + n), chunksize=10):
            assert good, what
            counts.update(some)
    told = (
        f"{counts['attack']:,} forged frames, {counts['restore']:,} restored logs, {counts['full disk']:,} full disks, "
    )
    return Score(n, f"0 missed, repeated, wrong or let in; {told}{counts['revocation']:,} revocations")


def power_failures(folder: Path, n: int) -> Score:
    from system.test_power_loss import powerless

    found = powerless(folder, n)
    assert found["lost"] == 0, found
    return Score(n, f"0 lost of {found['acknowledged']:,} acknowledged")


def damaged_plans(folder: Path, n: int) -> Score:
    import narrowcast as nc
    from plans.test_damaged_plans import LOT, run_lot, sound_folders

    for each in sound_folders():  # compiled kernels are not part of a folder's second
        nc.check(nc.load(each))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for first in range(0, n, LOT):
            run_lot(first, folder)
    return Score(n, "one error class, none above 1 s or 1 GB")


def hostile_tables(folder: Path, n: int) -> Score:
    from model.test_hostile_tables import attempted

    found = attempted(folder, n, first=1000)
    return Score(n, f"{found['refused']:,} refused in a line, the others read; none above 1 s, memory bounded")


def long_disasters(folder: Path, n: int) -> Score:
    if not n:
        pytest.skip("only in the whole run")
    places = [
        "tests/system/test_runtime_disaster.py",
        "tests/system/test_runtime_memory.py",
        "tests/system/test_full_disk.py",
    ]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-m", "soak or not nightly", *places]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-500:]
    return Score(n, done.stdout.strip().splitlines()[-1].strip("= "))


# Planted bugs: what must be seen to do harm.


def without_seals(folder: Path, n: int) -> Score:
    from system.packets import assaulted, harmed

    found = assaulted(folder, n, seal=False)
    harmed(found, n)
    told = f"{found['missed']:,} of {found['published']:,} real ones never came, without a gap notice"
    return Score(found["sent"], f"found: {found['forged']:,} forged messages delivered; {told}")


def without_sync(folder: Path, n: int) -> Score:
    from system.test_power_loss import powerless

    found = powerless(folder, n, sync="2m")
    assert found["lost"] > 0, "nobody noticed that nothing was synced"
    return Score(n, f"found: {found['lost']:,} acknowledged messages lost")


def gate_holes(folder: Path, n: int) -> Score:
    from deliver.trust.test_gate import test_planted_holes_are_found

    with pytest.MonkeyPatch.context() as patch:
        test_planted_holes_are_found(folder, patch)
    return Score(n, f"found: all {n}")


def broken_parts(folder: Path, n: int) -> Score:
    from deliver.parts.planted import BUGS
    from deliver.trust.test_simulated_faults import BUGS as HOLES
    from simulator import Schedule, simulate

    bugs = dict(list((HOLES | BUGS).items())[:n])
    for name, parts in bugs.items():
        found = (simulate(_drawn(seed, name in HOLES, Schedule), parts) for seed in range(500))
        assert any(each.let_in or not each.verdict.sound for each in found), f"nobody noticed a system that {name}"
    return Score(len(bugs), f"found: all {len(bugs)}")


def _drawn(seed: int, hole: bool, kind: Any) -> Any:
    drawn = kind.from_seed(seed)
    return replace(drawn, spy=True, revoked=True, sealed=True) if hole else drawn


TRIALS = (
    Trial("forged, replayed, damaged packets from the segment", 4000, 1_000_000, packets_inside),
    Trial("the same from another host", 2000, 1_000_000, packets_from_afar),
    Trial("access beyond an entitlement, by a subscriber", 1000, 100_000, beyond_entitlement),
    Trial("simulated schedules of faults and attacks", 40, 10_000, schedules),
    Trial("power failures under load", 5, 200, power_failures),
    Trial("damaged plan folders", 100, 10_000, damaged_plans),
    Trial("hostile Parquet, CSV and JSON files", 300, 10_000, hostile_tables),
    Trial("long disasters on real processes", 0, 1, long_disasters),
    Trial("planted: no seals", 5000, 5000, without_seals),
    Trial("planted: a log that does not sync", 2, 5, without_sync),
    Trial("planted: holes in the gate", 4, 4, gate_holes),
    Trial("planted: broken parts, simulated", 4, 100, broken_parts),
)


def rows(
    trials: tuple[Trial, ...], quick: bool, say: Callable[[str], None]
) -> Iterator[tuple[str, str, str, str, str]]:
    """A row for each trial: what, how often, what was seen, whether it is as it should be, and how long it took."""
    for trial in trials:
        size = trial.quick if quick else trial.full
        say(f"{trial.what} ({size:,}) …")
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            try:
                score = trial.run(Path(folder), size)
                found = (f"{score.tried:,}", score.seen, "held")
            except SKIPPED as skipped:
                found = ("0", str(skipped), "skipped")
            except Exception as error:  # whatever it is, it is a row of the table
                found = (f"{size:,}", (str(error).splitlines() or [type(error).__name__])[0][:200], "BROKEN")
        yield (trial.what, *found, f"{time.monotonic() - begun:.0f} s")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small part of everything, in a few minutes")
    parser.add_argument("--only", default="", help="only what has this text in its name")
    given = parser.parse_args(arguments)
    say = Console(stderr=True).print
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it says of every TLS connection how it ended
    table = Table("what was tried", "how often", "what was seen", "verdict", "time", title="Nobody in, nothing lost")
    table.caption = "held: nothing was seen that must not be. Planted rows break the system, and harm must be seen."
    found = list(rows(tuple(trial for trial in TRIALS if given.only in trial.what), given.quick, say))
    for row in found:
        table.add_row(*row)
    Console(width=160).print(table)
    return int(any(row[3] == "BROKEN" for row in found) or not found)


if __name__ == "__main__":
    sys.exit(main())
