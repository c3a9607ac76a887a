"""Every table from the sums: made at the driver where the sums are there, by shuffles where they are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.take_in import Ingested
from narrowcast.data.spark.output import PIECE, Output
from narrowcast.data.statistics import arrays, definitions
from narrowcast.data.statistics import tables as statistics
from narrowcast.data.statistics.gather import Gathered
from narrowcast.data.statistics.partials import CLASS, FLOW, OVERLAP, PAIR
from narrowcast.model.tables import key_metadata

if TYPE_CHECKING:
    import pyarrow as pa

    from narrowcast.profiles import Profile

# Subscriptions of which the driver holds who has which.
MOST_HELD = 2_000_000


@dataclass(frozen=True, eq=False)
class Held:
    """Who has which profile. Table `profiles` has profile, text and n_subscribers, in the order of the texts."""

    taken: Ingested
    profiles: pa.Table
    parsed: list[Profile]
    pairs: pa.Table | None

    @classmethod
    def of(cls, taken: Ingested) -> Held:
        """From the table of subscriptions, which has a good row."""
        import pyarrow as pa
        import pyarrow.compute as pc

        from narrowcast.profiles import Profile

        rows: pa.Table | None = None
        known: Mapping[str, Profile] = {}
        if taken.here is not None:
            rows, known = taken.here.table.select(["subscriber", "profile"]), taken.here.profiles
        elif taken.n_accepted <= MOST_HELD:
            rows = taken.rows.select("subscriber", "profile").toArrow()
        texts, counts = _texts(taken) if rows is None else _counts(rows["profile"])
        # As Python sorts them, by code points.
        ordered = sorted(zip(texts, counts, strict=True))
        count = pa.field("n_subscribers", pa.int64(), nullable=False)
        schema = pa.schema([("profile", pa.int64()), ("text", pa.string()), count])
        profiles = pa.table([range(len(ordered)), *zip(*ordered, strict=True)], schema=schema)
        pairs = None
        if rows is not None:
            number = pc.index_in(rows["profile"], value_set=profiles["text"].combine_chunks()).cast(pa.int64())
            pairs = pa.table({"profile": number, "subscriber": rows["subscriber"]})
            pairs = pairs.sort_by([("profile", "ascending"), ("subscriber", "ascending")]).combine_chunks()
        parsed = [known.get(text) or Profile.parse(text) for text, _ in ordered]
        return cls(taken, profiles, parsed, pairs)

    @cached_property
    def frame(self) -> DataFrame:
        """Table `holders` for Spark: profile, subscriber, each once, as they are the key of subscriptions."""
        spark = self.taken.rows.sparkSession
        if self.pairs is not None:
            return spark.createDataFrame(self.pairs)
        numbered = spark.createDataFrame(self.profiles.select(["profile", "text"]))
        held = self.taken.rows.select("subscriber", F.col("profile").alias("text")).join(numbered, "text")
        return held.select("profile", "subscriber")


def _texts(taken: Ingested) -> tuple[list[str], list[int]]:
    found = taken.rows.groupBy("profile").agg(F.count("*").alias("n")).toArrow()
    return found["profile"].to_pylist(), found["n"].to_pylist()


def _counts(texts: pa.ChunkedArray) -> tuple[list[str], list[int]]:
    found = texts.value_counts()
    return found.field("values").to_pylist(), found.field("counts").to_pylist()


Made = tuple[str, Any, tuple[str, ...]]
ORDER = {
    "interest": ("flow", "subscriber"),
    "flow_audience": ("flow",),
    "audiences": ("audience",),
    "holders": ("profile", "subscriber"),
    "flows": ("flow",),
    "flow_profile": ("flow", "profile"),
    "overlap": ("profile", "other"),
    "classes": ("flow",),
}
# Tables made by Python's workers from packed sums, and the kind of these.
PACKED = {"flow_profile": PAIR, "overlap": OVERLAP}


def write_statistics(
    sums: DataFrame,
    here: Gathered,
    held: Held,
    over: statistics.Totals,
    output: Output,
    pool: ThreadPoolExecutor,
    *,
    key: Sequence[str],
    overlap: bool,
) -> None:
    """Write all tables: those at the driver as they are, Spark's small ones side by side (`at_once`)."""
    messages, units, weight = over.of_profiles(held.profiles.num_rows)
    output.write("profile_rates", definitions.profile_rates(messages, units, over.seconds), ("profile",))
    output.write("selectivity", definitions.selectivity(weight, over.weight), ("profile",))
    made = _made_here(here, held, over, by_class=not key)
    if overlap and here.has(OVERLAP):
        made["overlap"] = arrays.overlap(here, over)
    names = [name for name in ORDER if (name != "overlap" or overlap) and (name != "classes" or not key)]
    left = [name for name in names if name not in made]
    large = {name for name, kind in PACKED.items() if over.most_rows.get(kind, 0) > PIECE}

    def write(name: str, rows: Any) -> None:
        metadata = key_metadata(key) if name == "flows" else None
        output.write(name, rows, ORDER[name], large=name in large, metadata=metadata, in_order=name in made)

    writing = [pool.submit(write, name, made[name]) for name in names if name in made]
    with _Shuffled(sums, held, over, by_class=not key) as shuffled:
        writing += [pool.submit(write, name, shuffled.table(name)) for name in left]
        for written in writing:
            written.result()


def _made_here(here: Gathered, held: Held, over: statistics.Totals, *, by_class: bool) -> dict[str, pa.Table]:
    """The tables that the sums at the driver suffice for, and that are not too large to be made there."""
    if held.pairs is None or not here.has(*((CLASS,) if by_class else (FLOW, PAIR))):
        return {}
    sums = arrays.by_class(here) if by_class else arrays.by_key(here)
    made = {"holders": held.pairs, "flows": arrays.flows(sums, over), "flow_profile": arrays.flow_profile(sums)}
    if sums.classes is not None:
        made["classes"] = sums.classes
    who = arrays.HolderNames.of(held.pairs, held.profiles.num_rows)
    if who.most(sums.pairs) <= arrays.MOST_ROWS:
        wanted = arrays.WantedPairs.of(sums, who)
        made["interest"] = arrays.interest(wanted, sums, who)
        made |= arrays.audiences(wanted, sums, who, over)
    return made


class _Shuffled:
    """Tables made by Spark, each when it is asked for; what several need is kept until the end."""

    def __init__(self, sums: DataFrame, held: Held, over: statistics.Totals, *, by_class: bool) -> None:
        self._sums, self._held, self._over, self._by_class = sums, held, over, by_class
        self._kept: list[DataFrame] = []

    def __enter__(self) -> _Shuffled:
        return self

    def __exit__(self, *_: object) -> None:
        for frame in reversed(self._kept):
            frame.unpersist()

    def table(self, name: str) -> DataFrame:
        if name == "overlap":
            return statistics.overlap(self._sums, self._over)
        if name == "holders":
            return self._held.frame
        if name == "audiences":
            return statistics.audiences(self._of_flow, self._flows, self._over)
        if name == "flow_audience":
            return self._of_flow.select("flow", "audience")
        if name == "classes":
            assert self._classes is not None
            return self._classes.select("flow", "profiles")
        return {"interest": lambda: self._interest, "flows": lambda: self._flows, "flow_profile": lambda: self._pairs}[
            name
        ]()

    def _keep(self, frame: DataFrame) -> DataFrame:
        self._kept.append(frame.persist(StorageLevel.DISK_ONLY))
        return self._kept[-1]

    @cached_property
    def _classes(self) -> DataFrame | None:
        return self._keep(statistics.classes(self._sums)) if self._by_class else None

    @cached_property
    def _flows(self) -> DataFrame:
        return statistics.flows(self._sums, self._over, self._classes)

    @cached_property
    def _pairs(self) -> DataFrame:
        return statistics.flow_profile(self._sums, self._classes)

    @cached_property
    def _interest(self) -> DataFrame:
        return self._keep(statistics.interest(self._pairs, self._held.frame))

    @cached_property
    def _of_flow(self) -> DataFrame:
        return self._keep(statistics.audience_of_flow(self._interest))
