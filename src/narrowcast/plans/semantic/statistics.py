"""What sources saw, measured elsewhere: rates, overlaps and content classes, merged by the coordinator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.tables import read_table

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class Statistics:
    """Selectivity and overlap of profiles, and how many messages matched which profiles.

    `weight[i]` is the decayed weight of the messages that profile i matched, of `total` in the window;
    `both` holds the same for pairs (i < j). `classes[k]` is a set of profiles that `count[k]` messages from
    broker `source[k]` (−1: unknown) matched and no other.
    """

    profiles: tuple[str, ...]
    weight: Floats
    total: float
    both: Mapping[tuple[int, int], float]
    classes: tuple[tuple[int, ...], ...]
    count: Floats
    source: Ints

    @classmethod
    def from_folder(cls, folder: str | Path, source: int | None = None) -> Statistics:
        """From the tables that `narrowcast measure` wrote of one source's messages, published at broker `source`.

        Reads profiles, selectivity, overlap (if it is there), classes and flows. The overlap table is
        decayed and windowed as the measuring was told to; classes count all messages.
        """
        place = Path(folder)
        tables = {
            name: _columns(place, name, columns)
            for name, columns in (
                ("profiles", ("profile", "text")),
                ("selectivity", ("profile", "weight", "selectivity")),
                ("flows", ("flow", "messages")),
            )
        }
        if not _there(place, "classes"):
            raise InputError(
                f"{place}: no classes table here, which says which profiles matched together",
                name="statistics",
                hint="measure without --key",
            )
        classes = _columns(place, "classes", ("flow", "profiles"))
        texts = dict(zip(tables["profiles"]["profile"], tables["profiles"]["text"], strict=True))
        numbers = sorted(texts)
        place_of = {number: i for i, number in enumerate(numbers)}
        weight = np.zeros(len(numbers))
        share = tables["selectivity"]
        for number, each in zip(share["profile"], share["weight"], strict=True):
            weight[place_of[number]] = each
        count = dict(zip(tables["flows"]["flow"], tables["flows"]["messages"], strict=True))
        sets = [tuple(sorted(place_of[p] for p in some)) for some in classes["profiles"]]
        return cls(
            tuple(texts[number] for number in numbers),
            weight,
            _total(share),
            _pairs(place, place_of),
            tuple(sets),
            np.array([count.get(flow, 0) for flow in classes["flow"]], np.float64),
            np.full(len(sets), UNKNOWN if source is None else source, np.int64),
        )

    @classmethod
    def merged(cls, several: Sequence[Statistics]) -> Statistics:
        """As if one had seen what all saw: weights add up, profiles are the same if their texts are.

        >>> one = Statistics(("x > 1",), np.array([2.0]), 4.0, {}, ((0,),), np.array([2.0]), np.array([5]))
        >>> sets = ((0, 1),)
        >>> two = Statistics(("x > 1", "x > 2"), np.ones(2), 2.0, {(0, 1): 1.0}, sets, np.ones(1), np.array([6]))
        >>> all = Statistics.merged([one, two])
        >>> all.selectivity(0), all.overlap(0, 1), all.overlap(1, 0)
        (0.5, 0.3333333333333333, 1.0)
        """
        index: dict[str, int] = {}
        for text in (text for each in several for text in each.profiles):
            index.setdefault(text, len(index))
        weight = np.zeros(len(index))
        both: dict[tuple[int, int], float] = {}
        found: dict[tuple[tuple[int, ...], int], float] = {}
        for each in several:
            to = np.array([index[text] for text in each.profiles], np.int64)
            weight[to] += each.weight
            for (i, j), amount in each.both.items():
                pair = (min(int(to[i]), int(to[j])), max(int(to[i]), int(to[j])))
                both[pair] = both.get(pair, 0.0) + amount
            for some, count, source in zip(each.classes, each.count.tolist(), each.source.tolist(), strict=True):
                key = (tuple(sorted(to[list(some)].tolist())), source)
                found[key] = found.get(key, 0.0) + count
        return cls(
            tuple(index),
            weight,
            float(sum(each.total for each in several)),
            both,
            tuple(some for some, _ in found),
            np.array(list(found.values()), np.float64),
            np.array([source for _, source in found], np.int64),
        )

    @classmethod
    def of_classes(
        cls, profiles: Sequence[str], classes: Sequence[tuple[int, ...]], count: Floats, source: Ints
    ) -> Statistics:
        """From the classes alone: how many messages of each broker matched which profiles and no other.

        >>> Statistics.of_classes(["x > 1"], [(0,)], np.array([2.0]), np.array([5])).selectivity(0)
        1.0
        """
        weight = np.zeros(len(profiles))
        for some, each in zip(classes, count.tolist(), strict=True):
            weight[list(some)] += each
        return cls(tuple(profiles), weight, float(count.sum()), {}, tuple(classes), count, source)

    def selectivity(self, i: int) -> float:
        """The decayed share of all messages that profile i matches."""
        return float(self.weight[i] / self.total) if self.total else 0.0

    def overlap(self, i: int, j: int) -> float:
        """O[i][j]: the decayed share of the messages matching i that also match j."""
        if not self.weight[i]:
            return 0.0
        return 1.0 if i == j else float(self.both.get((min(i, j), max(i, j)), 0.0) / self.weight[i])

    def matched(self, profiles: Sequence[Any]) -> Any:
        """(class × profile), as if each class were one message, for these profiles; one without statistics
        matched nothing."""
        from scipy.sparse import csr_array

        place: dict[str, list[int]] = {}
        for i, profile in enumerate(profiles):
            for text in {str(profile), getattr(profile, "text", str(profile))}:
                place.setdefault(text, []).append(i)
        to = [place.get(text) or place.get(_canonical(text), []) for text in self.profiles]
        pairs = sorted({(k, i) for k, some in enumerate(self.classes) for p in some for i in to[p]})
        rows, cols = (np.array([pair[at] for pair in pairs], np.int64) for at in (0, 1))
        return csr_array((np.ones(len(pairs), np.int32), (rows, cols)), shape=(len(self.classes), len(profiles)))


def _canonical(text: str) -> str:
    from narrowcast.plans.semantic.window import read_profile

    return str(read_profile(text))


def is_measured(folder: str | Path) -> bool:
    """Whether the tables of `narrowcast measure` are in there, and not messages."""
    return all(_there(Path(folder), name) for name in ("profiles", "selectivity", "flows"))


def _there(place: Path, name: str) -> bool:
    return (place / f"{name}.parquet").exists()


def _columns(place: Path, name: str, columns: tuple[str, ...]) -> dict[str, list[Any]]:
    if not place.is_dir():
        raise InputError(f"{place}: no such folder of measured tables", name="statistics", got=str(place))
    table = read_table(place / f"{name}.parquet", name=name, columns=columns)
    return {column: table[column].to_pylist() for column in columns}


def _total(share: Mapping[str, list[Any]]) -> float:
    """The weight of all messages, from a profile that matched some; of none it does not matter."""
    rows = zip(share["weight"], share["selectivity"], strict=True)
    heaviest = max(rows, default=(0.0, 0.0))
    return float(heaviest[0] / heaviest[1]) if heaviest[1] else 0.0


def _pairs(place: Path, place_of: Mapping[int, int]) -> dict[tuple[int, int], float]:
    if not _there(place, "overlap"):
        return {}
    columns = _columns(place, "overlap", ("profile", "other", "weight"))
    pairs = {}
    for one, other, weight in zip(columns["profile"], columns["other"], columns["weight"], strict=True):
        i, j = place_of[one], place_of[other]
        pairs[min(i, j), max(i, j)] = float(weight)
    return pairs
