"""`narrowcast plan channels` for tables too large for this process, or with `--master`: the same on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrowcast.cli.arguments import columns
from narrowcast.cli.output import notes, output, print_json
from narrowcast.cli.spark import running
from narrowcast.errors import UnsupportedError

# Above so many wishes the tables are not read into this process.
LARGE_ROWS = 20_000_000
BYTES_OF_A_ROW = 16


def too_large(interest: Path) -> bool:
    """Whether the interest table has more rows than one process should hold; text is judged by its size."""
    import pyarrow.parquet as pq

    files = [f for f in interest.rglob("*") if f.is_file()] if interest.is_dir() else [interest]
    try:
        rows = sum(
            pq.ParquetFile(file).metadata.num_rows
            if file.suffix == ".parquet"
            else file.stat().st_size // BYTES_OF_A_ROW
            for file in files
        )
    except (OSError, ValueError):
        return False  # whoever reads it says what is wrong with it
    return rows > LARGE_ROWS


def tables_of(demand: Path, interest: Path | None) -> tuple[Path, Path]:
    """The two tables of a demand: as they were given, or as a folder has them."""
    from narrowcast.model.intake import table_in

    return (demand, interest) if interest is not None else (table_in(demand, "flows"), table_in(demand, "interest"))


def channels_on_spark(
    flows: Path,
    interest: Path,
    *,
    key: str | None,
    master: str | None,
    limited: bool,
    out: Path | None,
    overwrite: bool,
    json: bool,
    **options: Any,
) -> None:
    """Plan, check, write and show; `options` are those of `data.planning.plan_channels`."""
    from narrowcast.cli.plan.channels import ways_table
    from narrowcast.model.folder import fingerprint, write_tables
    from narrowcast.model.tables import key_of

    if limited:
        raise UnsupportedError("Spark does not support limits or time limits yet", works=("without --master",))
    with running(master or "local[*]", "2g", "planning", (flows, interest)) as (spark, report):
        from narrowcast.data.ingest.set_aside import write_set_aside
        from narrowcast.data.planning.plan_channels import plan_channels

        inputs = {"flows": fingerprint(flows), "interest": fingerprint(interest)}
        known = columns(key) or key_of(flows)
        made = plan_channels(spark, flows, interest, inputs=inputs, key=known, progress=report, **options)
        plan = made.plan
        if out is not None:
            write_tables(plan, out, overwrite=overwrite)
            write_set_aside(made.tables, out / "quarantine.parquet")
        aside = sum(table.n_quarantined for table in made.tables.values())
        if aside:
            where = "" if out is None else f" in {out / 'quarantine.parquet'}"
            notes.print(f"[yellow]{aside:,} bad rows set aside[/]{where}", soft_wrap=True)
    if json:
        found = {name: getattr(plan, name) for name in ("cost", "baselines", "lower_bound", "gap")}
        print_json(found | {"set_aside": aside, "out": out, "made_on": made.made_on})
        return
    sizes = {name: rows.num_rows for name, rows in plan.tables.items()}
    output.print(
        f"[bold]{sizes['flows']:,} flows, {sizes['interest']:,} wishes[/] in {sizes['session_group']} sessions, "
        f"planned on the {made.made_on}: {plan.cost['relative']:.1%} of flooding's waste"
    )
    output.print(ways_table(plan.cost["relative"], plan.baselines))
    if out is not None:
        output.print(f"Written to {out}")
