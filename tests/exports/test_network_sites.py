"""A network plan for other middleware: a folder for each site, with addresses of its own."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.exports import TARGETS, export
from narrowcast.exports.network import site_plans
from plans.network.small import small_network


def a_plan() -> nc.Plan:
    return nc.plan(small_network(8, flows=6), "network", channels=2, price_group=0.0, price_send=50.0)


@pytest.mark.parametrize("target", [name for name in TARGETS if name != "csv"])
def test_every_site_has_a_folder_with_what_the_target_makes_of_it(target: str, tmp_path: Path) -> None:
    plan = a_plan()
    interface = "10.0.0.0/24" if target in ("aeron", "ultramessaging") else "eth0"
    files = export(plan, target, tmp_path / "out", interface=interface)
    sites = site_plans(plan)  # type: ignore[arg-type]
    assert {name.partition("/")[0] for name in files.texts} == set(sites)
    for name, text in files.texts.items():
        assert (tmp_path / "out" / name).read_text() == text
    for site, its in sites.items():
        alone = set(zip(*(each.tolist() for each in its.unicast), strict=True))
        rows = list(csv.DictReader((tmp_path / "out" / site / "subscribers.csv").read_text().splitlines()))
        wished = zip(its.interest.flow_of_pair.tolist(), its.interest.users.tolist(), strict=True)
        takers = {its.interest.user_names[user] for pair in wished if pair not in alone for user in pair[1:]}  # type: ignore[index]
        assert {row["subscriber"] for row in rows} == takers


def test_sites_do_not_share_addresses_and_too_small_a_network_is_refused(tmp_path: Path) -> None:
    plan = a_plan()
    export(plan, "ultramessaging", tmp_path / "um", interface="10.0.0.0/24")
    seen: dict[str, str] = {}
    for path in sorted((tmp_path / "um").glob("*/flows.csv")):
        for row in csv.DictReader(path.read_text().splitlines()):
            at = next(value for value in row.values() if value.startswith("239."))
            assert seen.setdefault(at, path.parent.name) == path.parent.name
    assert seen, "no site has multicast"
    with pytest.raises(InputError, match="room for"):
        export(plan, "nats", tmp_path / "nats", base_address="239.77.0.0/31")
