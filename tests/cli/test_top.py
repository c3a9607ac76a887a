"""`narrowcast top`: subscribers first, as many lines as there are, no share above 1."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from narrowcast.cli.deliver.top import page
from narrowcast.deliver.processes.overview import Overview


def told(edges: int, groups: int, lag: int = 0) -> dict[str, object]:
    """What a system tells whose edges' clocks run ahead of the source's, so that more seems to arrive than is sent."""
    overview = Overview()
    for now in (0.0, 1.0, 2.0, 3.0):
        sent = {f"group {g} messages": 100 * now / groups * 1.2 for g in range(groups)}
        overview.take({"name": "source-0", "role": "source", "epoch": 2, "carried": {"frames sent": 10 * now},
                       "counts": {"messages sent": 100 * now, **sent}}, now)  # fmt: skip
        for e in range(edges):
            counts = {"delivered": 140 * now, "messages arrived": 130 * now, "filtered by flow": 120 * now}
            overview.take({"name": f"host-{e}", "role": "edge", "carried": {},
                           "counts": counts, "groups": list(range(groups)),
                           "subscriptions": {f"a-desk-with-a-very-long-name-{e}": {"lag": lag * e}}}, now)  # fmt: skip
    return overview.measured(2.0)


def lines(found: dict[str, object], width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(page(found, height - 1, width))
    return console.file.getvalue().rstrip("\n").splitlines()


@pytest.mark.parametrize("adapting", [False, True])
@pytest.mark.parametrize(("edges", "groups"), [(0, 0), (1, 2), (40, 2), (500, 100), (2, 60)])
def test_the_page_fits_a_terminal_of_24_lines_with_subscribers_first(edges: int, groups: int, adapting: bool) -> None:
    found = told(edges, max(groups, 1))
    if adapting:
        found["adapting"] = dict.fromkeys(("kept", "now", "replans", "moves", "joins"), 12) | {"why": "not worth it"}
    shown = lines(found, 80, 24)
    assert len(shown) <= 23
    heads = [line.split(",")[0].split(" (")[0].strip() for line in shown]
    order = [heads.index(name) for name in ("Subscribers", "Groups", "Processes")]
    assert order == sorted(order)
    assert order[0] == 1
    if edges >= 40:
        assert sum("desk" in line for line in shown) >= 7
        assert len(shown) >= 22  # no line is left unused either
        assert f"of {edges:,})" in shown[1]


def test_no_share_passes_1_though_clocks_disagree() -> None:
    found = told(3, 1)
    shares = [share for edge in found["edges"] for share in edge["measured"].values()]
    shares += [group["share"] for group in found["groups"]]
    assert max(shares) == 1.0
    assert min(shares) >= 0.0


def test_who_is_furthest_behind_comes_first() -> None:
    shown = [line for line in lines(told(30, 2, lag=5), 120, 24) if "desk" in line]
    assert "name-29" in shown[0]
    assert shown[0].split()[-1] == "145"


def test_without_a_terminal_everything_is_shown() -> None:
    console = Console(file=io.StringIO(), width=120)
    console.print(page(told(50, 20)))
    shown = console.file.getvalue().splitlines()
    assert sum("desk" in line for line in shown) == sum("host-" in line for line in shown) == 50


def test_numbers_are_whole_on_80_columns_and_names_give_way() -> None:
    shown = lines(told(30, 2, lag=5), 80, 24)
    assert shown[2].split() == [
        "subscriber",
        "useful/s",
        "useful",
        "group",
        "session",
        "flow",
        "profile",
        "repaired",
        "lag",
    ]
    assert shown[3].split()[0].endswith("…")


def test_latency_stands_beside_the_bound_where_a_plan_has_one() -> None:
    overview = Overview()
    for now in (0.0, 1.0, 2.0, 3.0):
        predicted = {"edges": {"desk": {"bound_ms": 5.0}}}
        overview.take({"name": "boss", "role": "coordinator", "counts": {}, "carried": {}, "predicted": predicted}, now)
        for name in ("desk", "other"):
            counts = {"latency µs": 3100 * now, "latency samples": now} if name == "desk" else {}
            overview.take({"name": name, "role": "edge", "carried": {}, "counts": counts}, now)
    shown = lines(overview.measured(2.0), 100, 24)
    assert shown[2].split()[-1] == "ms"
    assert [line.split()[-1] for line in shown[3:5]] == ["3.1/5.0", "0"]
