"""The numbers a report shows are those of the definition, and the pictures show those numbers."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np
import pytest

import narrowcast as nc
from naive.random_interest import random_interest
from naive.served import naive_served
from narrowcast.evaluate.knee import knee_of
from narrowcast.plans.channels.report.matrix import matrix_pictures, ordered
from narrowcast.plans.channels.report.served import served
from narrowcast.reports.png import png
from narrowcast.reports.text import number, percent
from narrowcast.reports.whatif import parse_whatif


def plans(seed: int) -> list[nc.channels.ChannelsPlan]:
    wants = random_interest(seed)
    return [
        nc.channels.plan(wants, groups=3, sessions=5, method="gf", alpha=2, beta=0.5, seed=seed),
        nc.channels.hybrid(wants, groups=2, unicast="reverse", seed=seed),
        nc.channels.hybrid(wants, groups=2, sessions=4, beta=0.5, seed=seed),
    ]


@pytest.mark.parametrize("seed", range(6))
def test_what_receivers_get_is_what_the_tables_say(seed: int) -> None:
    for plan in plans(seed):
        read, slow = served(plan), naive_served(plan.to_tables())
        for name, expected in slow.items():
            u = read.interest.user_names.index(name)
            for what, value in expected.items():
                assert getattr(read, what)[u] == pytest.approx(value, abs=1e-9), (plan.kind, name, what)
        if plan.weights is None:
            assert read.excess.sum() == pytest.approx(plan.cost.excess)


@pytest.mark.parametrize("seed", range(4))
def test_the_flows_to_blame_arrive_and_are_not_wanted(seed: int) -> None:
    plan = plans(seed)[0]
    read = served(plan)
    wishes = {(row["subscriber"], row["flow"]) for row in plan.to_tables().tables["interest"].to_pylist()}
    for u, name in enumerate(read.interest.user_names):
        blamed = read.culprits(u, most=100)
        assert sum(rate for _, rate in blamed) == pytest.approx(read.received[u] - read.wanted[u], abs=1e-9)
        assert [rate for _, rate in blamed] == sorted((rate for _, rate in blamed), reverse=True)
        assert all((name, read.interest.flow_names[k]) not in wishes for k, _ in blamed)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_keeps_groups_and_sessions_together(seed: int) -> None:
    for plan in plans(seed):
        read = served(plan)
        flows, users = ordered(read)
        assert sorted(users) == list(range(read.interest.n_users))
        assert set(flows) == set(np.flatnonzero(read.interest.audience_sizes > 0))
        for keys in (read.group[flows], read.session[flows]):
            assert 1 + np.count_nonzero(keys[1:] != keys[:-1]) == np.unique(keys).size


def pixels(uri: str) -> np.ndarray:
    """Decode a PNG of ours, filter 2 on every line."""
    data = base64.b64decode(uri.split(",", 1)[1])
    width, height = struct.unpack(">II", data[16:24])
    size = struct.unpack(">I", data[33:37])[0]
    lines = np.frombuffer(zlib.decompress(data[41 : 41 + size]), np.uint8).reshape(height, 1 + width * 4)
    assert (lines[:, 0] == 2).all()
    return np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8).reshape(height, width, 4)


def test_the_picture_has_waste_where_it_arrives_and_nothing_elsewhere() -> None:
    """Two flows of equal rate in groups of their own, three users: after planning only wishes are left."""
    wants = nc.Interest.from_pairs([0, 0, 1], [0, 1, 2], [1.0, 1.0])
    plan = nc.channels.plan(wants, groups=2, sessions=2, method="gf")
    before, after, small = matrix_pictures(served(plan))
    assert small
    opaque = pixels(before)[..., 3] > 0
    assert opaque.all()  # flooding brings everything to everybody
    left = pixels(after)
    assert left.shape[:2] == (3, 2)
    assert np.count_nonzero(left[..., 3]) == 3
    assert set(left[left[..., 3] > 0][:, 2]) == {232}  # all of it is wanted


def test_a_png_is_whole() -> None:
    picture = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
    uri = "data:image/png;base64," + base64.b64encode(png(picture)).decode()
    assert (pixels(uri) == picture).all()


def test_numbers_are_short_and_honest() -> None:
    assert [number(v) for v in (0, 1234567.8, 12.3456, 0.5, 1e-9)] == ["0", "1,234,568", "12.3", "0.500", "1.00e-09"]
    assert [number(v) for v in (np.nan, np.inf, -np.inf)] == ["–", "∞", "−∞"]
    shown = [percent(v).replace("\u202f", " ") for v in (0, 1e-6, 0.179, 1, 27.63, -0.05)]
    assert shown == ["0 %", "< 0.1 %", "17.9 %", "100 %", "2,763 %", "-5.0 %"]


def test_points_that_share_an_x_become_series() -> None:
    grid = [{"groups": g, "sessions": s, "cost": 10.0 / g / s, "relative": 1 / g} for g in (1, 2, 4) for s in (5, 10)]
    made = parse_whatif({"x": "groups", "points": grid, "present": {"groups": 2, "sessions": 10}, "knee": 2})
    assert [name for name, _ in made.series] == ["10 sessions", "5 sessions"]  # the present one first
    assert [[point["groups"] for point in line] for _, line in made.series] == [[1, 2, 4], [1, 2, 4]]
    assert (made.present, made.knee) == (2.0, 2.0)


def test_the_knee_is_where_the_curve_bends() -> None:
    assert knee_of([(1, 10.0), (2, 4.0), (3, 3.5), (4, 3.0)]) == 2
    assert knee_of([(1, 10.0), (2, 4.0)]) is None
    assert knee_of([(1, 1.0), (2, 1.0), (3, 1.0)]) is None
