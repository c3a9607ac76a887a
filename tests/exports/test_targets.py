"""Every target: what the plan says is what the files say, whatever the names; limits are told in one line."""

from __future__ import annotations

import csv
import io
import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from narrowcast.errors import InfeasibleError, InputError, PlanError, UnsupportedError
from narrowcast.exports import TARGETS, Options, export
from narrowcast.exports.layout import layout_of
from narrowcast.exports.text import token
from narrowcast.model.interest_tables import interest_tables
from narrowcast.model.plan import Tables
from narrowcast.plans.verbs import decoded


def interest(flows: list[str], users: list[str]) -> nc.Interest:
    """Flow i is wanted by users i and i + 1, round and round."""
    pairs = sorted({(i, (i + j) % len(users)) for i in range(len(flows)) for j in range(2)})
    flow, user = zip(*pairs, strict=True)
    return nc.Interest.from_pairs(flow, user, [1.0 + i for i in flow][: len(flows)], flow_names=flows, user_names=users)


def channels(flows: list[str], users: list[str], *, spread: int = 1, groups: int | None = None) -> nc.Plan:
    """Flow i in session i, and `spread` sessions in a group; no search, so that many can be made."""
    wants = interest(flows, users)
    of = [i // spread for i in range(len(flows))]
    joins = sorted({(users[u], of[k]) for k in range(len(flows)) for u in wants.users_of(k)})
    tables = {
        "flow_session": pa.table({"flow": flows, "session": list(range(len(flows)))}),
        "session_group": pa.table({"session": list(range(len(flows))), "group": of}),
        "subscriber_group": pa.table({"subscriber": [s for s, _ in joins], "group": [g for _, g in joins]}),
        **interest_tables(wants),
    }
    cost = dict.fromkeys(("c1", "c2", "excess"), 1.0)
    return decoded(Tables("channels", tables, cost, parameters={"groups": groups or len(flows)}))


def hybrid(flows: list[str], users: list[str]) -> nc.Plan:
    return nc.channels.hybrid(interest(flows, users), groups=2, unicast="reverse", seed=0)


def rows(text: str) -> list[dict[str, str]]:
    """As somebody reads them who knows of the apostrophe before what would be a formula."""
    found = csv.DictReader(io.StringIO(text, newline=""))
    return [
        {name: cell[1:] if re.match(r"'+[=@+\t\r-]", cell) else cell for name, cell in row.items()} for row in found
    ]


FLOWS, USERS = [f"F{i}" for i in range(7)], [f"desk-{i}" for i in range(4)]
# Everything that is special somewhere: XML, CSV, subjects, patterns, spreadsheets.
hostile = st.lists(
    st.text(st.sampled_from("<>&\"'`,;\n\r\t .*>|[]{}()$%\\/=+@-é字😀Aa0"), min_size=1, max_size=12),
    min_size=2,
    max_size=6,
    unique=True,
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["channels", "hybrid"])
def test_every_flow_and_every_wish_is_in_the_tables(target: str, kind: str) -> None:
    plan = channels(FLOWS, USERS) if kind == "channels" else hybrid(FLOWS, USERS)
    address = "10.0.0.1" if target in ("aeron", "ultramessaging") else "eth0"
    files = TARGETS[target](plan, Options(interface=address)).texts
    sent = {(r["flow"], r["session"]) for r in rows(files["flows.csv"])}
    taken = {(r["subscriber"], r["session"]) for r in rows(files["subscribers.csv"])}
    apart = {(r["flow"], r["subscriber"]) for r in rows(files.get("unicast.csv", "flow,subscriber\n"))}
    session = dict(sent)
    assert len(session) == len(sent)
    for pair in plan.to_tables().tables["interest"].to_pylist():
        flow, user = pair["flow"], pair["subscriber"]
        assert (flow, user) in apart or (user, session[flow]) in taken
    groups = {(r["subscriber"], int(r["group"])) for r in rows(files["subscribers.csv"])}
    planned = plan.to_tables().tables["subscriber_group"].to_pylist()
    assert groups == {(r["subscriber"], r["group"]) for r in planned}


@given(flows=hostile, users=hostile)
@settings(max_examples=60)
def test_hostile_names_come_back_exactly(flows: list[str], users: list[str]) -> None:
    plan = channels(flows, users)
    for target in ("cyclonedds", "ultramessaging", "aeron", "nats", "csv"):
        texts = TARGETS[target](plan, Options()).texts
        assert [r["flow"] for r in rows(texts["flows.csv"])] == flows, target
        assert {r["subscriber"] for r in rows(texts["subscribers.csv"])} <= set(users), target
        for name, text in texts.items():
            if name.endswith(".xml"):
                ET.fromstring(text)
    um = ET.fromstring(TARGETS["ultramessaging"](plan, Options()).texts["um.xml"])
    assert [topic.get("topicname") for topic in um.iter("topic")] == flows
    mapped = TARGETS["nats"](plan, Options()).texts["nats.conf"]
    lines = re.findall(r'^  "flow\.([A-Za-z0-9_%-]+)": "nc\.g\d+\.s\d+\.([A-Za-z0-9_%-]+)"$', mapped, re.M)
    assert [one for one, _ in lines] == [token(flow) for flow in flows]
    assert len(mapped.splitlines()) == len(flows) + 2


@given(a=st.text(max_size=8), b=st.text(max_size=8))
def test_different_names_have_different_tokens(a: str, b: str) -> None:
    assert (token(a) == token(b)) == (a == b)
    assert re.fullmatch(r"[A-Za-z0-9_%-]+", token(a))


def test_cyclonedds_maps_every_group_the_plan_may_use() -> None:
    """So that a later plan within its budget changes partition names only."""
    text = TARGETS["cyclonedds"](channels(FLOWS, USERS, groups=12), Options(ttl=4, port=8400)).texts["cyclonedds.xml"]
    space = {"c": "https://cdds.io/config"}
    root = ET.fromstring(text)
    mapping = {
        m.get("DCPSPartitionTopic"): m.get("NetworkPartition") for m in root.iterfind(".//c:PartitionMapping", space)
    }
    assert mapping == {f"g{g}-*.*": f"g{g}" for g in range(12)}
    addresses = {p.get("name"): p.get("address") for p in root.iterfind(".//c:NetworkPartition", space)}
    assert addresses["g11"] == "239.77.0.12"
    assert len(set(addresses.values())) == 12
    assert root.findtext(".//c:MulticastTimeToLive", namespaces=space) == "4"
    assert root.findtext(".//c:Base", namespaces=space) == "8400"


def test_rti_guards_are_disjoint_and_name_every_flow() -> None:
    text = TARGETS["rti"](channels(FLOWS, USERS, spread=2), Options(key="symbol")).texts["rti_qos.xml"]
    guards = [element.text or "" for element in ET.fromstring(text).iter("filter_expression")]
    listed = [flow for guard in guards for flow in re.fullmatch(r"symbol MATCH '(.*)'", guard).group(1).split(",")]
    assert sorted(listed) == FLOWS
    addresses = [element.text for element in ET.fromstring(text).iter("receive_address")]
    assert len(set(addresses)) == len(guards) == 4


def test_rti_refuses_a_guard_it_cannot_write_and_names_the_way_out() -> None:
    with pytest.raises(InputError, match="--guard session"):
        TARGETS["rti"](channels(["a,b", "c"], USERS), Options())
    text = TARGETS["rti"](channels(["a,b", "c"], USERS), Options(guard="session")).texts["rti_qos.xml"]
    assert [e.text for e in ET.fromstring(text).iter("filter_expression")] == ["flow MATCH 'g0-*'", "flow MATCH 'g1-*'"]
    long = [f"{'x' * 200}{i}" for i in range(400)]
    with pytest.raises(InfeasibleError, match="--guard session"):
        TARGETS["rti"](channels(long, USERS, spread=400), Options())


def test_aeron_takes_odd_addresses_and_leaves_the_even_ones_to_control() -> None:
    plan = channels(FLOWS, USERS)
    found = rows(TARGETS["aeron"](plan, Options(interface="10.1.0.0/16", ttl=3, port=4000)).texts["channels.csv"])
    last = [
        int(re.search(r"239\.77\.0\.(\d+):4000\|interface=10\.1\.0\.0/16\|ttl=3$", r["channel"]).group(1))
        for r in found
    ]
    assert last == [1, 3, 5, 7, 9, 11, 13]


def test_ultramessaging_has_a_transport_session_per_session() -> None:
    plan = channels(FLOWS, USERS, spread=3)
    texts = TARGETS["ultramessaging"](plan, Options()).texts
    places = {(r["address"], r["port"]): r["session"] for r in rows(texts["flows.csv"])}
    assert len(places) == len(set(places.values())) == 7
    options = [o.attrib for o in ET.fromstring(texts["um.xml"]).iter("option")]
    context = {o["name"]: int(o["default-value"]) for o in options if o["name"].startswith("transport_lbtrm_source")}
    assert context["transport_lbtrm_source_port_high"] - context["transport_lbtrm_source_port_low"] == 6
    assert context["transport_lbtrm_source_port_low"] > max(int(r["port"]) for r in rows(texts["flows.csv"]))


@pytest.mark.parametrize(
    ("target", "options", "says"),
    [
        ("cyclonedds", {"base_address": "239.77.0.0/30"}, "7 groups need 7 addresses, but .* has 3"),
        ("cyclonedds", {"base_address": "239.255.0.0/24"}, "239.255.0.1, where DDS discovers"),
        ("csv", {"base_address": "239.128.0.0/24"}, "switches flood"),
        ("cyclonedds", {"memberships": 3}, "net.ipv4.igmp_max_memberships.*--memberships"),
        ("rti", {"memberships": 3}, "--joins-per-subscriber 2"),
        ("aeron", {"base_address": "239.77.0.0/29"}, "7 groups need 14 addresses"),
        ("aeron", {"interface": "eth0"}, "must be an address or a network for Aeron, got 'eth0'"),
        ("csv", {"port": 65530}, "--port must be at most 65529 .*, got 65530"),
        ("ultramessaging", {"port": 65530}, "--port must be at most .*, got 65530"),
    ],
)
def test_a_limit_is_checked_with_one_line_that_says_what_to_do(
    target: str, options: dict[str, object], says: str
) -> None:
    plan = channels(FLOWS, USERS)
    with pytest.raises((InputError, InfeasibleError), match=says) as caught:
        TARGETS[target](plan, Options(**options))
    assert "\n" not in str(caught.value)


def test_the_smallest_range_named_is_enough() -> None:
    plan = channels([f"F{i}" for i in range(8)], USERS)
    with pytest.raises(InfeasibleError, match=r"range of /28 or wider"):
        TARGETS["csv"](plan, Options(base_address="239.77.0.0/29"))
    TARGETS["csv"](plan, Options(base_address="239.77.0.0/28"))
    TARGETS["aeron"](channels(FLOWS, USERS), Options(base_address="239.77.0.0/28"))


def test_options_report_all_their_problems_at_once() -> None:
    with pytest.raises(InputError) as caught:
        Options(base_address="10.0.0.0/8", port=80, ttl=300, interface="a|b", key="1x", guard="no", memberships=0)
    for name in ("--base-address", "--port", "--ttl", "--interface", "--key", "--guard", "--memberships"):
        assert name in str(caught.value)


def test_a_name_that_xml_cannot_hold_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"U\+0001"):
        TARGETS["ultramessaging"](channels(["a\x01", "b"], USERS), Options())
    TARGETS["cyclonedds"](channels(["a\x01", "b"], USERS), Options())  # its XML has no flow names


def test_a_topic_too_long_for_ultra_messaging_is_refused() -> None:
    with pytest.raises(InputError, match="at most 246 bytes"):
        TARGETS["ultramessaging"](channels(["é" * 124, "b"], USERS), Options())


def test_unicast_on_cyclonedds_needs_an_interface() -> None:
    with pytest.raises(InputError, match="--interface"):
        TARGETS["cyclonedds"](hybrid(FLOWS, USERS), Options())


def test_a_plan_without_groups_goes_to_nats_and_csv_alone() -> None:
    plan = nc.filters.place(nc.Tree([-1, 0], names=["w", "a"]), [1.0, 1.0], k=1)
    for target in TARGETS:
        if target not in ("csv", "nats"):  # where a filter is a leaf node
            with pytest.raises(UnsupportedError, match="csv") as caught:
                TARGETS[target](plan, Options())
            assert caught.value.works == ("nats", "csv")
    assert rows(TARGETS["csv"](plan, Options()).texts["plan_trees.csv"])[1]["parent"] == "w"


def test_an_unsound_plan_is_never_exported(tmp_path: Path) -> None:
    plan = channels(FLOWS, USERS)
    tables = plan.to_tables()
    fewer = {**tables.tables, "subscriber_group": tables.tables["subscriber_group"].slice(1)}
    broken = replace(plan, written=replace(tables, tables=fewer))
    with pytest.raises(PlanError, match="unsound"):
        export(broken, "csv", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_folder_is_whole_and_the_same_every_time(tmp_path: Path) -> None:
    plan = nc.channels.plan(interest(FLOWS, USERS), groups=3, sessions=5, method="gf")
    export(plan, "aeron", tmp_path / "a")
    export(plan, "aeron", tmp_path / "b")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()
    head = json.loads((tmp_path / "a" / "export.json").read_text())
    assert set(head["files"]) == {p.name for p in (tmp_path / "a").iterdir()} - {"export.json"}
    with pytest.raises(InputError, match="already exists"):
        export(plan, "aeron", tmp_path / "a")


def test_the_layout_counts_groups_of_the_budget() -> None:
    assert layout_of(channels(FLOWS, USERS, groups=30)).n_groups == 30
    assert layout_of(channels(FLOWS, USERS)).n_groups == 7
