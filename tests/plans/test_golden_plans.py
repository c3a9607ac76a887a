"""The same inputs and seeds give the same plan tables as ever, for every kind and method."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plans.golden_plans import GOLDENS, make


@pytest.mark.slow
@pytest.mark.usefixtures("capfd")
def test_every_kind_and_method_decides_what_it_always_has(tmp_path: Path) -> None:
    expected, found = json.loads(GOLDENS.read_text()), make(tmp_path)
    changed = {name: tables for name, tables in expected.items() if found.get(name, {}) != tables}
    assert not changed
    assert found.keys() == expected.keys()
