"""What is wrong with a configuration or a host is said at once, with its fix."""

from __future__ import annotations

import asyncio
import socket
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import MemoryRegistry
from narrowcast.deliver.processes.backbone import url_of
from narrowcast.deliver.processes.preflight import (
    check_configuration,
    check_multicast,
    check_ports,
    joined_groups,
    refuse,
)
from narrowcast.deliver.processes.settings import to_toml
from narrowcast.deliver.processes.supervise import kept_id, local_multicast, local_system
from narrowcast.deliver.processes.system import (
    KEY,
    AdaptSection,
    EdgeSection,
    OverlaySection,
    SourceSection,
    System,
    agreed,
)
from narrowcast.deliver.transport.dds.config import DdsSettings, configuration
from narrowcast.errors import InputError, TransportError
from narrowcast.model import Interest
from narrowcast.plans.channels import api as channels


def written(folder: Path, text: str) -> Path:
    path = folder / "node.toml"
    path.write_text(text)
    return path


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "nats.url").write_text("nats://me:secret@10.0.0.1:4222\n")
    text = 'nats = "nats.url"\nshards = 2\n[multicast]\ninterface = "eth1"\n[source]\nname = "a"\nlinger_ms = 1.5\n'
    config = System.read(written(tmp_path, text))
    assert config.url == "nats://me:secret@10.0.0.1:4222"
    assert (config.shards, config.source.linger_ms) == (2, 1.5)
    assert config.multicast == DdsSettings(interface="eth1")


def test_every_mistake_in_a_file_is_named_at_once(tmp_path: Path) -> None:
    text = """
        shards = "two"
        sytem = "x"
        replicas = 0
        overlay = 1
        [coordinator]
        key = "symbol"
        [source]
        shard = true
        [edge]
        subscription = 1
        subscriptions = { ann = 7 }
    """
    with pytest.raises(InputError) as caught:
        System.read(written(tmp_path, text))
    for part in (
        "shards must be a whole number, got 'two'",
        "replicas must be at least 1, got 0",
        "coordinator.key must be a list of strings, got 'symbol'",
        "edge.subscriptions must be a table of strings, got {'ann': 7}",
        "overlay must be a table, got 1",
        "sytem is not known (did you mean system?)",
        "nats must be the URL of NATS or a file that holds it",
        "source.shard must be a whole number, got True",
        "edge.subscription is not known (did you mean subscriptions?)",
    ):
        assert part in str(caught.value)


@pytest.mark.parametrize(("text", "said"), [("nats = ", "not TOML"), (None, "No such file")])
def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "missing.toml" if text is None else written(tmp_path, text)
    with pytest.raises(InputError, match=said):
        System.read(path)


@pytest.mark.parametrize("host", [1, 2, 3])
def test_the_files_of_the_example_are_read_and_written_without_change(tmp_path: Path, host: int) -> None:
    found = System.read(f"examples/three-hosts/host-{host}.toml")
    assert found.multicast == DdsSettings(interface="eth0", domain=80, groups=16)
    assert System.from_toml(found.to_toml(), found.folder / "again.toml") == found


def test_a_system_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    whole = System(
        nats='nats://me:pa"ss\\@h:1',
        shards=3,
        multicast=DdsSettings(lease=1.5, pack=False, mtu=9000),
        overlay=OverlaySection(brokers={"b 1": "tcp://h:1", "ü.x": "tcp://h:2"}, public_keys={"b 1": "k"}),
        source=SourceSection(name="s", linger_ms=0.25, bytes=700),
        edge=EdgeSection(subscriptions={"ann": "name = 'it''s' AND price > 1\n"}),
        adapt=AdaptSection(horizon=60, moves=5),
        folder=tmp_path,
    )
    plain = [local_system(tmp_path, multicast=None), local_system(tmp_path, tmp_path / "plan", key=("a", "b"))]
    for system in (whole, *plain, System(folder=tmp_path, nats="x", multicast=DdsSettings())):
        assert System.from_toml(system.to_toml(), tmp_path / "node.toml") == system


def test_the_registry_holds_what_all_must_agree_on_and_no_secret(tmp_path: Path) -> None:
    brokers = {"b1": "tcp://h:1"}
    system = System(
        nats="nats://me:secret@h:1", shards=2, multicast=DdsSettings(), overlay=OverlaySection("k", brokers)
    )
    text = system.public({"b1": "public"}).to_toml()
    assert "secret" not in text
    found = System.from_toml(text)
    assert (found.shards, found.multicast, found.overlay.brokers) == (2, DdsSettings(), brokers)
    assert found.overlay.public_keys == {"b1": "public"}


def test_the_id_of_a_system_is_made_once_and_kept(tmp_path: Path) -> None:
    assert kept_id(tmp_path / "one") == kept_id(tmp_path / "one") != kept_id(tmp_path / "two")
    known = kept_id(tmp_path / "one")
    system = System.from_toml(f'id = "{known}"\n[security]\nseal = false\n')
    assert (system.number, system.security.seal) == (int(known, 16), False)
    assert System.from_toml(system.public({}).to_toml()).number == system.number
    with pytest.raises(InputError, match="id must be 16 hexadecimal digits, got 'xyz'"):
        System.from_toml('id = "xyz"')


def test_a_domain_that_somebody_uses_is_left_alone_unless_it_is_asked_for(tmp_path: Path) -> None:
    def domain(given: int | None = None, folder: Path = tmp_path / "new") -> int:
        return local_multicast(folder, interface="lo", groups=3, domain=given).domain

    free = domain()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("", 7400 + 250 * free))
        assert domain() not in (free, None)
        assert domain(free) == free
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        member = socket.inet_aton(f"239.{free}.0.9") + socket.inet_aton("127.0.0.1")
        other.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        assert domain() != free
        written = local_system(tmp_path / "old", multicast=DdsSettings(domain=free)).to_toml()
        (tmp_path / "old").mkdir()
        (tmp_path / "old" / "up.toml").write_text(written)
        assert domain(folder=tmp_path / "old") == free, "clients of a system that is started again know its domain"


def test_a_record_of_another_version_is_waited_out_and_not_fatal() -> None:
    async def ask() -> None:
        registry = MemoryRegistry()
        await registry.put(KEY, b'{"shards": 1, "multicast": null, "brokers": {}}')
        await agreed(registry)

    with pytest.raises(TransportError, match="cannot be read"):
        asyncio.run(ask())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = TEXTS | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.lists(TEXTS)


@given(st.recursive(st.dictionaries(TEXTS, VALUES), lambda inner: st.dictionaries(TEXTS, VALUES | inner), max_leaves=5))
def test_whatever_is_written_as_toml_is_read_back_equal(table: dict[str, Any]) -> None:
    assert tomllib.loads(to_toml(table)) == table


def test_a_folder_where_nothing_was_started_says_how_to_start(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="narrowcast up PLAN"):
        url_of(tmp_path)


def test_preflight_finds_everything_wrong_with_multicast() -> None:
    settings = DdsSettings(interface="nowhere0", network="10.0.0.0/29", groups=20, domain=400)
    problems = [str(problem) for problem in check_multicast(settings)]
    assert len(problems) == 4
    for part in (
        "interface nowhere0 does not exist",
        "multicast.network must be multicast",
        "6 addresses for 20 groups",
        "multicast.domain must be from 0 to 230",
    ):
        assert any(part in problem for problem in problems), part
    assert all("fix: " in problem for problem in problems)
    assert not [problem for problem in check_multicast(DdsSettings(network="239.201.0.0/16")) if problem.fatal]


def test_preflight_names_subscribers_in_more_groups_than_a_socket_may_join() -> None:
    n = int(Path("/proc/sys/net/ipv4/igmp_max_memberships").read_text()) + 5
    flows = list(range(n))  # each has a lover of its own, and ann loves them all
    interest = Interest.from_pairs(flows + flows, [0] * n + [k + 1 for k in flows], [1.0] * n)
    plan = channels.plan(interest, groups=n, sessions=n, method="gf")
    assert len(set(plan.to_tables().tables["subscriber_group"]["group"].to_pylist())) == n
    found = list(check_multicast(DdsSettings(network="239.201.0.0/16", groups=n + 1), plan))
    assert any("such as 0" in p.what and "igmp_max_memberships" in p.fix and not p.fatal for p in found)
    assert any(p.fatal and "multicast.groups is 1" in p.what for p in check_multicast(DdsSettings(groups=1), plan))


def test_preflight_sees_a_port_that_is_taken_and_two_that_clash() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        at = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        problems = [problem.what for problem in check_ports({"a": at, "b": at, "c": "tcp://127.0.0.1"})]
    assert len(problems) == 3
    assert "cannot listen" in problems[0]
    assert "both listen" in problems[1]
    assert "no port" in problems[2]


def test_preflight_says_that_nats_does_not_answer(tmp_path: Path) -> None:
    config = System.read(written(tmp_path, 'nats = "nats://127.0.0.1:1"\n'))
    problems = asyncio.run(check_configuration(config))
    with pytest.raises(TransportError, match=r"cannot reach NATS at 127\.0\.0\.1:1"):
        refuse(problems)


def test_a_group_joined_by_another_program_is_seen() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        member = socket.inet_aton("239.202.0.9") + socket.inet_aton("127.0.0.1")
        other.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        assert "239.202.0.9" in map(str, joined_groups("lo"))
        notes = [p for p in check_multicast(DdsSettings(network="239.202.0.0/16")) if "another program" in p.what]
    assert [note.fatal for note in notes] == [False]


def test_the_configuration_of_the_middleware_maps_every_group_once() -> None:
    text = configuration(DdsSettings(groups=3, mtu=1500))
    for g in range(3):
        assert text.count(f'DCPSPartitionTopic="g{g}-*.*"') == 1
        assert text.count(f'address="239.77.0.{g + 1}"') == 1
    assert "<FragmentSize>1316B</FragmentSize>" in text
