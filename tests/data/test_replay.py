"""A plan replayed over a log: what each group, link and subscriber gets, by hand and by definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from narrowcast.data.planning.replay import replay
from narrowcast.errors import InputError

pytestmark = pytest.mark.spark

# Flows a, b share session s1 and group g1; c has s2 and g2; d goes to Zoe by unicast; e is in no plan.
MESSAGES = [("a", 10), ("a", 20), ("b", 5), ("c", 7), ("c", 1), ("c", 2), ("d", 100), ("e", 50)]
SUBSCRIPTIONS = [
    ("Ann", "flow = 'a'"),
    ("Ann", "flow = 'a' AND size > 15"),
    ("Bob", "flow IN ('b', 'c')"),
    ("Zoe", "flow = 'd'"),
    ("Zoe", "flow = 'e'"),
]


def write_tables(place: Path) -> None:
    tables = {
        "messages": pd.DataFrame(MESSAGES, columns=["flow", "size"]),
        "subscriptions": pd.DataFrame(SUBSCRIPTIONS, columns=["subscriber", "profile"]),
        "flow_session": pd.DataFrame({"flow": ["a", "b", "c"], "session": [1, 1, 2]}),
        "session_group": pd.DataFrame({"session": [1, 2], "group": [0, 1]}),
        "subscriber_group": pd.DataFrame({"subscriber": ["Ann", "Bob", "Bob"], "group": [0, 0, 1]}),
        "unicast": pd.DataFrame({"flow": ["d"], "subscriber": ["Zoe"]}),
    }
    for name, table in tables.items():
        table.to_parquet(place / f"{name}.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("replay")
    write_tables(place)
    return place


def test_a_small_plan_carries_what_a_person_counts(spark: Any, folder: Path, tmp_path: Path) -> None:
    result = replay(
        spark,
        folder,
        folder / "messages.parquet",
        key=("flow",),
        subscriptions=folder / "subscriptions.parquet",
        out=tmp_path / "out",
    )
    # Ann gets a, a, b (3) and passes them; Bob gets these and c, c, c (6) and passes them all.
    assert result.cost["c1"] == 3 + 6
    assert result.cost["c2"] == 3 + 6
    assert result.cost["useful"] == 2 + 4 + 2
    assert result.cost["unicast"] == 1
    assert result.cost["missed"] == 1
    assert result.cost["sent"] == 6 + 1
    assert result.cost["excess"] == 9 + 9 - 2 * 6
    read = {n: pd.read_parquet(tmp_path / "out" / f"replay_{n}.parquet") for n in ("groups", "subscribers", "links")}
    assert read["groups"].values.tolist() == [["0", 2, 3, 35.0], ["1", 1, 3, 10.0]]
    by_name = read["subscribers"].set_index("subscriber")
    assert by_name.loc["Ann", ["received_bytes", "useful_messages", "useful_bytes"]].tolist() == [35.0, 2, 30.0]
    assert by_name.loc["Bob", ["received_bytes", "passed_bytes", "useful_bytes"]].tolist() == [45.0, 45.0, 15.0]
    assert by_name.loc["Zoe", ["unicast_bytes", "missed_messages", "missed_bytes"]].tolist() == [100.0, 1, 50.0]
    assert read["links"].values.tolist() == [
        ["group 0", "Ann", 3, 35.0],
        ["group 0", "Bob", 3, 35.0],
        ["group 1", "Bob", 3, 10.0],
        ["source", "Zoe", 1, 100.0],
        ["source", "group 0", 3, 35.0],
        ["source", "group 1", 3, 10.0],
    ]


def test_interest_in_whole_flows_can_stand_for_profiles(spark: Any, folder: Path, tmp_path: Path) -> None:
    pairs = [("a", "Ann"), ("b", "Bob"), ("c", "Bob"), ("d", "Zoe")]
    pd.DataFrame(pairs, columns=["flow", "subscriber"]).to_parquet(tmp_path / "interest.parquet")
    result = replay(spark, folder, folder / "messages.parquet", key=("flow",), interest=tmp_path / "interest.parquet")
    assert (result.cost["useful"], result.cost["missed"], result.cost["c1"]) == (2 + 4 + 1, 0, 9)
    assert result.folder is None


def test_a_key_the_messages_lack_is_one_line(spark: Any, folder: Path) -> None:
    with pytest.raises(InputError, match="no column 'topic' to make flows of"):
        replay(spark, folder, folder / "messages.parquet", key=("topic",), interest=folder / "messages.parquet")
    with pytest.raises(InputError, match="exactly one of subscriptions and interest"):
        replay(spark, folder, folder / "messages.parquet", key=("flow",))
