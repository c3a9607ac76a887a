"""F1 to F14: what an attack on the running system found, and the tests that it cannot be found again.

Each finding has its tests by name; that they are there, and are run, is a test as well. What had none is tested here.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import narrowcast as nc
from narrowcast.cli import run
from narrowcast.deliver.processes.planner import checked
from narrowcast.deliver.wire import decode_payload, encode_payload
from narrowcast.errors import InputError, PlanError
from narrowcast.exports.text import table
from narrowcast.model.folder import write_tables
from system.live import a_plan

TESTS = Path(__file__).parent.parent
FINDINGS: dict[str, tuple[str, ...]] = {
    "F1 two systems on one host mix": ("system/test_trust.py::test_two_systems_on_one_host_do_not_mix",),
    "F2 anyone on the segment reads, forges and silences": (
        "deliver/wire/test_seal.py::test_nothing_of_a_message_can_be_read_on_the_way_and_the_same_frame_is_never_sealed_the_same",
        "system/test_trust.py::test_f2_ten_thousand_packets_from_inside_the_segment_get_nothing_in_and_silence_nobody",
        "system/test_trust.py::test_f2_packets_from_another_host_get_nothing_in_and_silence_nobody",
    ),
    "F3 a restored or emptied log": (
        "system/test_trust.py::test_a_log_that_went_back_is_noticed_and_everybody_goes_on_with_the_new_one",
    ),
    "F4 acknowledged and never delivered": (
        "deliver/wire/test_sendable.py::test_any_message_is_refused_in_one_line_or_comes_out_equal_at_every_edge",
        "deliver/wire/test_sendable.py::test_what_cannot_come_out_the_same_is_refused_with_the_name_of_its_attribute",
        "system/test_trust_findings.py::test_f4_the_seven_messages_are_refused_or_come_out_the_same",
    ),
    "F5 a broker makes a sound claim of a damaged frame": (
        "deliver/parts/test_broker.py::test_a_damaged_frame_ends_here_whether_it_would_be_opened_or_not",
    ),
    "F6 one large message kills the source": (
        "deliver/parts/test_publisher.py::test_a_message_that_is_too_large_is_refused_before_anything_is_sent",
        "system/test_trust.py::test_large_messages_and_rubbish_in_the_registry_stop_no_process_and_no_delivery",
    ),
    "F7 a full disk": (
        "system/test_full_disk.py",
        "deliver/trust/test_simulated_faults.py::"
        "test_nobody_is_let_in_and_nothing_lost_by_full_disks_revocations_forged_frames_and_restored_logs",
    ),
    "F8 replicas do not reach the registry": (
        "system/test_trust.py::test_log_and_registry_have_three_replicas_also_where_somebody_made_them_with_one",
    ),
    "F9 one credential for everybody": (
        "system/test_accounts.py::"
        "test_f9_a_thousand_attempts_beyond_an_entitlement_and_a_revocation_while_traffic_runs",
        "system/test_accounts.py::test_f9_nats_is_known_by_its_certificate",
        "deliver/trust/test_gate.py::test_planted_holes_are_found",
        "deliver/parts/test_records.py::test_no_record_ends_a_part_and_those_that_are_none_are_counted",
    ),
    "F10 bound to more than was said": (
        "system/test_trust.py::test_multicast_on_loopback_takes_nothing_from_another_interface",
    ),
    "F11 a publish that cannot succeed hangs": (
        "deliver/wire/test_sendable.py::test_a_value_that_holds_itself_or_one_thing_a_billion_times_is_refused_at_once",
        "deliver/parts/test_publisher.py::test_what_the_log_will_never_take_is_said_at_once_and_the_next_batch_goes",
    ),
    "F12 damaged plans": (
        "plans/test_damaged_plans.py::test_a_damaged_folder_is_refused_in_one_line_or_judged",
        "system/test_trust_findings.py::test_f12_up_judges_first",
    ),
    "F13 connecting is a single try": (
        "deliver/transport/test_connecting.py::test_sixty_four_that_connect_before_the_server_is_up_all_get_in",
        "deliver/transport/test_connecting.py::test_the_end_is_one_line_that_says_where_why_and_how_long",
    ),
    "F14 a folder that cannot be written, formulas, a value that unpacks to 200 MB": (
        "system/test_trust_findings.py::test_f14_a_folder_that_cannot_be_written_is_one_line",
        "system/test_trust_findings.py::test_f14_no_cell_of_a_csv_is_a_formula",
        "deliver/parts/test_records.py::test_a_value_that_unpacks_to_far_more_than_it_is_is_not_unpacked",
    ),
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_every_finding_has_its_tests(finding: str) -> None:
    for name in FINDINGS[finding]:
        path, _, function = name.partition("::")
        tree = ast.parse((TESTS / path).read_text())
        found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert (function in found) if function else any(each.startswith("test_") for each in found), name


def test_all_fourteen_are_here() -> None:
    assert [finding.split()[0] for finding in FINDINGS] == [f"F{n}" for n in range(1, 15)]


@pytest.mark.parametrize(
    "value",
    [
        {"$time": 10**30},
        {"$time": "x"},
        {"$bytes": "%"},
        {"$bytes": 7},
        {"$decimal": "x"},
        {"$decimal": []},
        {"$time": 1.5},
    ],
    ids=repr,
)
def test_f4_the_seven_messages_are_refused_or_come_out_the_same(value: object) -> None:
    try:
        sent = encode_payload({"x": value})
    except InputError:
        return
    assert decode_payload(sent) == {"x": value}


def test_f12_up_judges_first(tmp_path: Path) -> None:
    folder = a_plan(tmp_path / "plan")
    tables = nc.load(folder).to_tables()
    broken = dict(tables.tables) | {"session_group": tables.tables["session_group"].slice(1)}
    write_tables(replace(tables, tables=broken), tmp_path / "bad")
    with pytest.raises(PlanError, match="unsound and is not installed"):
        checked(tmp_path / "bad")
    assert run(["up", str(tmp_path / "bad"), "--system", str(tmp_path / "data"), "--no-multicast"]) not in (0, 4)
    assert not (tmp_path / "data" / "jetstream").exists()


def test_f14_a_folder_that_cannot_be_written_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    for command in (
        ["up", "--system", "/proc/nowhere/data", "--no-multicast"],
        ["generate", "market", "--out", "/proc/nowhere/market", "--subscribers", "3", "--messages", "5"],
        ["account", "add", "a", "--system", "/proc/nowhere/data", "--server", "nats://127.0.0.1:4222"],
    ):
        assert run(command) not in (0, 4), command
        said = capfd.readouterr().err.strip().splitlines()
        assert "Traceback" not in "".join(said)
        assert "/proc/nowhere" in said[-1], said


def test_f14_no_cell_of_a_csv_is_a_formula() -> None:
    cells = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "'=1", "-2", "plain"]
    lines = table(["c"], [[cell] for cell in cells]).splitlines()[1:]
    assert [line[1:2] for line in lines] == ["'"] * 6 + ["-", "p"]
