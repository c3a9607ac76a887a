"""`narrowcast match`: which profiles match which messages, on this machine, without Spark."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.errors import InputError, ProfileError


def match(
    messages: Annotated[Path, typer.Argument(help="The messages: Parquet, CSV or JSON lines.")],
    profile: Annotated[
        list[str] | None, typer.Option(help="A profile: SQL, or XPath over the column xml. Repeat it for more.")
    ] = None,
    subscriptions: Annotated[
        Path | None, typer.Option(help="A table with columns subscriber and profile, instead of --profile.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the (message, profile) index pairs to this Parquet file.")
    ] = None,
    strict: Annotated[bool, typer.Option(help="Stop at the first bad row instead of setting it aside.")] = False,
    top: Annotated[int, typer.Option(min=1, help="How many profiles to show, busiest first.")] = 10,
    json: AsJson = False,
) -> None:
    """Match messages against profiles and count.

    A subscription whose profile cannot be read, or compares a column with a value of another type, is set aside,
    named and counted; `--strict` stops instead. A column that is not there is said once and counts as null.
    For logs beyond one machine use the Spark pipeline.

    Examples:

        narrowcast match messages.parquet --profile "symbol = 'IBM' AND price > 100"

        narrowcast match messages.parquet --subscriptions subscriptions.parquet --out pairs.parquet
    """
    from narrowcast.data.ingest.fit import SOME, absent_in, absent_line, idle_line
    from narrowcast.model.tables import local_path, read_table
    from narrowcast.profiles import Matcher

    out = None if out is None else local_path(out, "out")
    log = read_table(messages, name="messages")
    names, profiles, aside = _profiles(profile or [], subscriptions, strict, log.schema)
    for reason in aside:
        notes.print(f"set aside: {reason}", soft_wrap=True, markup=False, style="yellow")
    if subscriptions is not None:
        for name, places in absent_in(profiles, log.column_names).items():
            line = absent_line(name, len(places), [names[i] for i in places], log.column_names)
            notes.print(line, soft_wrap=True, markup=False, style="yellow")
    start = time.perf_counter()
    matcher = Matcher(profiles)
    built = time.perf_counter()
    rows, cols = matcher.match(log, missing="error" if subscriptions is None else "null")
    done = time.perf_counter()
    counts = np.bincount(cols, minlength=len(profiles))
    if out is not None:
        _write_pairs(out, rows, cols)
    idle = np.flatnonzero(counts == 0)
    result: dict[str, Any] = {
        "messages": log.num_rows,
        "profiles": len(profiles),
        "set_aside": len(aside),
        "pairs": len(rows),
        "matched_nothing": len(idle),
        "messages_wanted": len(np.unique(rows)),
        "build_seconds": built - start,
        "match_seconds": done - built,
    }
    if len(idle):
        line = idle_line(len(profiles), len(idle), [(names[i], profiles[i]) for i in idle[:SOME]])
        notes.print(line, soft_wrap=True, markup=False, style="yellow")
    busiest = np.argsort(-counts, kind="stable")[:top]
    if json:
        shown = [{"subscriber": names[i], "profile": str(profiles[i]), "matches": int(counts[i])} for i in busiest]
        print_json(result | {"busiest": shown})
        return
    output.print(
        table("Matched", ("", "count"), [(k.replace("_", " "), v) for k, v in result.items()], numbers=("count",))
    )
    shown_rows = [(names[i], str(profiles[i])[:100], int(counts[i])) for i in busiest]
    output.print(table("Busiest profiles", ("subscriber", "profile", "matches"), shown_rows, numbers=("matches",)))


def _profiles(
    texts: list[str], subscriptions: Path | None, strict: bool, schema: Any
) -> tuple[list[str], list[Any], list[str]]:
    """Names, parsed profiles, and a line for each subscription that was set aside."""
    from narrowcast.data.ingest.fit import misfit
    from narrowcast.model.tables import read_table
    from narrowcast.profiles import Profile
    from narrowcast.profiles.match.codes import kind_of

    if bool(texts) == (subscriptions is not None):
        raise InputError("match needs exactly one of --profile and --subscriptions", name="profile")
    if subscriptions is None:
        return [f"profile {i}" for i in range(len(texts))], [Profile.parse(text) for text in texts], []
    rows = read_table(subscriptions, name="subscriptions", columns=("subscriber", "profile"))
    kinds = {field.name: kind_of(field.type) for field in schema}
    names, profiles, aside = [], [], []
    for at, (name, text) in enumerate(zip(rows["subscriber"].to_pylist(), rows["profile"].to_pylist(), strict=True)):
        try:
            if not isinstance(text, str):
                raise InputError(f"profile must be text, got {text!r}", name="profile")
            parsed = Profile.parse(text)
            if reason := misfit(parsed, kinds):
                raise InputError(f"{name} {reason}", name="profile")
            profiles.append(parsed)
            names.append(str(name))
        except InputError as error:
            whose = f" (of {name}: {text[:120]})" if isinstance(error, ProfileError) else ""
            reason = f"{subscriptions}, row {at + 1}: {error}{whose}"
            if strict:
                raise InputError(reason, name="profile", got=text) from None
            aside.append(reason)
    return names, profiles, aside


def _write_pairs(out: Path, rows: Any, cols: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not out.parent.is_dir():
        raise InputError(f"{out.parent}: no such folder", name="out", got=str(out))
    half = out.with_name(f".{out.name}.half")
    pq.write_table(pa.table({"message": rows, "profile": cols}), half)
    half.rename(out)
