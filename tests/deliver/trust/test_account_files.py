"""Accounts on disk, their subjects, their credentials, and what nats-server's log says of those who go beyond."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from narrowcast.deliver.processes.system import read_credential
from narrowcast.deliver.transport.nats.link import target_of, tokens
from narrowcast.deliver.trust.accounts import ROLES, Accounts, account_of, nats_users, permissions
from narrowcast.deliver.trust.audit import Audit
from narrowcast.deliver.trust.told import is_told_by
from narrowcast.errors import InputError


def test_accounts_are_kept_for_their_owner_only_and_a_credential_says_who_it_is(tmp_path: Path) -> None:
    accounts = Accounts(tmp_path / "data")
    ann = accounts.add(account_of("ann", "subscriber", "region='EU'"))
    before = accounts.state
    accounts.add(account_of("feed", "publisher"))
    assert [(each.name, each.entitled) for each in accounts.listed()] == [("ann", "region = 'EU'"), ("feed", None)]
    assert accounts.state != before
    assert (tmp_path / "data" / "accounts.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "ann").write_text(ann.credential("tls://narrowcast:x@10.0.0.1:4222", "-----BEGIN CERTIFICATE-----\n"))
    target = target_of(read_credential(tmp_path / "ann"))
    assert target.servers == (f"tls://ann:{ann.password}@10.0.0.1:4222",)
    assert target[1:] == ("ann", "subscriber", {"ca": str(tmp_path / "ann")})
    assert ann.password not in repr(ann)
    assert ann.password.encode() not in ann.record
    with pytest.raises(InputError, match="must be new"):
        accounts.add(account_of("ann", "subscriber"))
    accounts.revoke("ann")
    with pytest.raises(InputError, match="must be one of feed"):
        accounts.revoke("ann")
    with pytest.raises(InputError, match="needs itself"):
        accounts.revoke("gate")
    (tmp_path / "data" / "accounts.json").write_text("[{}]")
    with pytest.raises(InputError, match="cannot be read"):
        accounts.listed()


@pytest.mark.parametrize(
    ("name", "role", "entitled"),
    [("", "subscriber", None), ("a b", "subscriber", None), ("a/b", "subscriber", None), ('a"', "subscriber", None),
     ("a", "king", None), ("a", "publisher", "x = 1"), ("a", "subscriber", "x ="), ("a" * 65, "subscriber", None)],
)  # fmt: skip
def test_what_cannot_be_an_account_is_refused(name: str, role: str, entitled: str | None) -> None:
    with pytest.raises(InputError):
        account_of(name, role, entitled)


def test_only_their_own_subjects_are_for_publishers_and_subscribers() -> None:
    for role in ROLES:
        publish, subscribe = permissions(account_of("ann", role), "nc", 2)
        if role in ("publisher", "subscriber"):
            assert all("616e6e" in subject for subject in publish)
            assert {subject for subject in subscribe if "616e6e" not in subject} <= {"nc.to.7e70756c7365"}
        if role in ("source", "broker", "gate"):
            assert not {">", "$JS.>", "$KV.nc.>", "nc.>"} & {*publish, *subscribe}
            assert not [subject for subject in publish if "PURGE" in subject or "STREAM.DELETE" in subject]
            assert any("nc-log-1" in subject for subject in publish)
    assert nats_users([account_of("ann", "subscriber")], "nc", 1).count("\n") == 1


def test_what_nats_refused_is_in_the_audit(tmp_path: Path) -> None:
    audit = Audit(tmp_path)
    audit.harvest(
        b'[1] [ERR] 127.0.0.1:1 - cid:5 - "v1" - Publish Violation - User "ann", Subject "nc.log.0"\n'
        b'[1] [ERR] 127.0.0.1:1 - cid:5 - Subscription Violation - User "ann", Subject ">", SID 3\n'
        b'[1] [ERR] 127.0.0.1:1 - cid:9 - authentication error - User "eve"\n[1] [INF] Server is ready\n'
    )
    lines = [json.loads(line) for line in audit.path.read_text().splitlines()]
    found = [(line["account"], line["action"], line["what"]) for line in lines]
    assert found == [("ann", "publish", "nc.log.0"), ("ann", "subscribe", ">"), ("eve", "connect", "NATS")]


def test_a_subscriber_tells_of_itself_as_an_edge_and_rubbish_is_told_by_nobody() -> None:
    edge = {"name": "ann/1", "role": "edge", "counts": {"gaps": 1}, "carried": {}, "started": 1.5, "at": 2, "epoch": 3,
            "groups": [1], "subscriptions": {"ann/1-1": {"profile": "p > 1", "lag": 0}}}  # fmt: skip

    def told(**changes: object) -> bool:
        return is_told_by(tokens("ann/1"), json.dumps(edge | changes).encode())

    assert told()
    for lie in (
        {"name": "source-0"}, {"role": "source"}, {"role": "coordinator"}, {"counts": {"x": "1"}}, {"counts": []},
        {"carried": {"frames": 1e300}}, {"at": "now"}, {"epoch": None}, {"groups": {}}, {"groups": ["1"]},
        {"subscriptions": {"a": {"lag": 1}}}, {"subscriptions": []}, {"predicted": {}}, {"adapting": {}},
        {"counts": {"x": float("nan")}}, {"name": 7}, {"counts": {"x" * 70_000: 1}},
    ):  # fmt: skip
        assert not told(**lie), lie
    for data in (b"", b"[]", b"{", b"[" * 100_000, b"9" * 6000, b"\xff", b" " * 2_000_000):
        assert not is_told_by(tokens("ann/1"), data)
    mine = {"name": "coordinator-x", "role": "coordinator", "counts": {}, "carried": {}, "predicted": {"groups": {}}}
    assert is_told_by(tokens("coordinator-x"), json.dumps(mine).encode())
