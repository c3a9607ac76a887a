"""What a value of each type means."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from narrowcast.profiles import Profile

NAN = float("nan")
LATE = datetime(2024, 3, 1, 1, tzinfo=timezone(timedelta(hours=2)))

CASES: list[tuple[str, Any, bool]] = [
    ("x > 100", 101, True),
    ("x > 100", True, False),
    ("x > 100", "101", False),
    ("NOT x > 100", "101", False),
    ("x = 1", True, False),
    ("x = TRUE", 1, False),
    ("x = TRUE", np.True_, True),
    ("x", True, True),
    ("NOT x", False, True),
    ("NOT x", None, False),
    ("x IS NULL", None, True),
    ("x IS NULL", pd.NaT, True),
    ("x IS NULL", pd.NA, True),
    ("x IS NULL", np.datetime64("NaT"), True),
    ("x IS NULL", NAN, False),
    ("x IS NOT NULL", [1], True),
    ("x <> 1", [1], False),
    ("x > 1e300", NAN, True),
    ("x <= 1e300", NAN, False),
    ("x <> 5", NAN, True),
    ("x = 5", NAN, False),
    ("x BETWEEN 1 AND 9", NAN, False),
    ("x NOT BETWEEN 1 AND 9", NAN, True),
    ("x NOT IN (1, 2)", NAN, True),
    ("x > 1e300", Decimal("NaN"), True),
    ("x > 1e300", float("inf"), True),
    ("x = 0.0", -0.0, True),
    ("x = 100.1", Decimal("100.1"), True),
    ("x = 100.1", 100.1, True),
    ("x = 100.1", np.float32(100.1), False),
    ("x < 9007199254740993", 9007199254740992.0, True),
    ("x = 7", np.int8(7), True),
    ("x = 7", pa.scalar(7), True),
    ("x IS NULL", pa.scalar(None), True),
    ("x = 'a'", np.str_("a"), True),
    ("x = 'a'", pa.scalar("a"), True),
    ("x = 'a'", b"a", False),
    ("x < 'a'", "B", True),
    ("x < '\U0001f600'", "\ue000", True),
    ("x >= TIMESTAMP '2024-02-29 23:00:00'", LATE, True),
    ("x > TIMESTAMP '2024-02-29 23:00:00'", LATE, False),
    ("x = DATE '2024-02-29'", date(2024, 2, 29), True),
    ("x = DATE '2024-02-29'", datetime(2024, 2, 29), True),
    ("x = DATE '2024-02-29'", pd.Timestamp("2024-02-29", tz="UTC"), True),
    ("x = DATE '2024-02-29'", np.datetime64("2024-02-29T00:00:00.000000000"), True),
    ("x = DATE '2024-02-29'", pa.scalar(datetime(2024, 2, 29, tzinfo=UTC)), True),
    ("x = DATE '2024-02-29'", "2024-02-29", False),
    ("x LIKE 'a_c'", "a😀c", True),
    ("x LIKE 'a%c'", "a\nc", True),
    ("x LIKE 'A%'", "a", False),
    ("x NOT LIKE 'A%'", 5, False),
    ("x NOT IN (1, NULL)", 2, False),
    ("(x > 5) IS NOT TRUE", None, True),
]


@pytest.mark.parametrize(("text", "value", "wanted"), CASES)
def test_a_value_matches_as_its_kind_says_and_so_do_the_boxes(text: str, value: Any, wanted: bool) -> None:
    profile = Profile.parse(text)
    assert profile.matches({"x": value}) is wanted
    assert profile.boxes is not None
    assert any(all(s.contains(value) for s in box.values()) for box in profile.boxes) is wanted


def test_a_missing_attribute_is_null() -> None:
    assert Profile.parse("x IS NULL AND y = 1").matches({"y": 1})
    assert not Profile.parse("x > 1").matches({})
    assert not Profile.parse("NOT x > 1").matches({})
