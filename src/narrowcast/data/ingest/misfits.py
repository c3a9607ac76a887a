"""Profiles that compare a column with constants of another type: set aside when the messages' types are known."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.convert import kind_of
from narrowcast.data.ingest.fit import misfit
from narrowcast.data.ingest.take_in import Checked, Ingested
from narrowcast.data.ingest.verdicts import KIND, fault_if, judged

# Whose a profile is.
HOLDER = {"subscriptions": "subscriber", "queries": "client"}


def without_misfits(taken: Mapping[str, Ingested], log: Checked | Ingested | None, strict: bool) -> dict[str, Ingested]:
    """The tables, with profiles that cannot be asked of these messages among the bad rows.

    Costs nothing where all fit: what profiles ask is known from taking them in.
    """
    if log is None:
        return dict(taken)
    kinds = {field.name: kind_of(field.dataType) for field in log.rows.schema.fields if field.name in log.columns}
    return {name: _without(table, kinds, strict) if name in HOLDER else table for name, table in taken.items()}


def _without(table: Ingested, kinds: Mapping[str, str], strict: bool) -> Ingested:
    if all(kinds.get(name, "null") in (asked, "null") for name, asked in table.uses if asked):
        return table
    reasons = _reasons(table, kinds)
    spark = table.checked.sparkSession
    listed = spark.createDataFrame(list(reasons.items()), "profile string, _misfit string")
    joined = table.checked.join(F.broadcast(listed), "profile", "left")
    reason = F.concat(F.col(HOLDER[table.name]), F.lit(" "), F.col("_misfit"))
    bad = fault_if(F.col(KIND).isNull() & F.col("_misfit").isNotNull(), "wrong type", reason)
    return Checked(table.name, judged(joined, bad).drop("_misfit"), table.columns, table.types).counted(strict)


def _reasons(table: Ingested, kinds: Mapping[str, str]) -> dict[str, str]:
    from narrowcast.profiles import Profile

    here = None if table.here is None else table.here.profiles
    texts = here or [row["profile"] for row in table.rows.select("profile").distinct().collect()]
    found = {text: misfit(Profile.parse(text), kinds) for text in texts}
    return {text: reason for text, reason in found.items() if reason is not None}
