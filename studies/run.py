"""Run an experiment: its points spread over Spark, every finished one kept, then rows, claims and figures written.

folder/points.jsonl   a line per finished point; what stands here is not run again
folder/rows.parquet, rows.csv, claims.json, figure.png, figure.html
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.version import __version__
from studies.draw import draw_page, draw_png
from studies.experiment import Claim, Experiment, Point

Report = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Ran:
    """What came of an experiment. `fresh` points ran now, in `wall_s` together; the others were done before.

    `cpu_s` is the CPU time of the fresh points added up: what they take one after the other on one idle core.
    """

    name: str
    folder: Path
    claims: tuple[Claim, ...]
    rows: int
    points: int
    fresh: int
    cpu_s: float
    wall_s: float


def run(
    name: str,
    experiment: Experiment,
    folder: str | Path,
    *,
    quick: bool = False,
    spark: Any = None,
    progress: Report | None = None,
    pictures: bool = True,
) -> Ran:
    """Run what is not there yet and write everything anew. Without `spark` the points run here, one by one.

    The same points give the same rows wherever and in whatever order they ran. A folder with points of
    another size is refused: quick and full results do not mix. An experiment that measures the machine runs here.
    """
    if lacking := experiment.missing():
        raise UnsupportedError(f"{name} {lacking}")
    if experiment.alone:
        spark = None
    place, points = Path(folder), list(experiment.points(quick))
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{place}: cannot be a folder for results: {error.strerror}", name="out") from None
    known = _known(place, quick)
    todo = [point for point in points if _key(point) not in known]
    begin = time.perf_counter()
    coming = _work(experiment, todo, spark)
    with (place / "points.jsonl").open("a", encoding="utf-8") as kept, closing(coming):
        if not known:
            kept.write(json.dumps({"experiment": name, "quick": quick, "narrowcast": __version__}) + "\n")
        for at, (point, rows, seconds, cpu) in enumerate(coming):
            spent = {"seconds": round(seconds, 4), "cpu_s": round(cpu, 4)}
            known[_key(point)] = {"point": dict(point), "rows": [_plain(row) for row in rows], **spent}
            kept.write(json.dumps(known[_key(point)]) + "\n")
            kept.flush()
            if progress is not None:
                progress(len(points) - len(todo) + at + 1, len(points))
    wall = time.perf_counter() - begin
    found = [known[_key(point)] for point in points]
    rows = [row for one in found for row in one["rows"]]
    claims = tuple(experiment.claims(rows))
    _write(place, name, experiment, rows, claims, found, quick=quick, pictures=pictures)
    cpu = sum(known[_key(point)]["cpu_s"] for point in todo)
    return Ran(name, place, claims, len(rows), len(points), len(todo), cpu, wall)


def _work(experiment: Experiment, todo: Sequence[Point], spark: Any) -> Generator[tuple[Point, Any, float, float]]:
    if spark is not None:
        from studies.spread import spread

        yield from spread(spark, experiment.run, todo)
        return
    for point in todo:
        begin, busy = time.perf_counter(), time.process_time()
        rows = experiment.run(point)
        yield point, rows, time.perf_counter() - begin, time.process_time() - busy


def _known(place: Path, quick: bool) -> dict[str, Any]:
    """The points finished earlier; a last line cut short by a kill is dropped from the file as well."""
    path = place / "points.jsonl"
    if not path.exists():
        return {}
    whole, found = [], {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            read = json.loads(line)
        except ValueError:
            break
        whole.append(line)
        if "experiment" in read:
            if read["quick"] != quick:
                size = "quick" if read["quick"] else "full"
                raise InputError(f"{place} holds a {size} run", name="out", hint="choose another --out or delete it")
        else:
            found[_key(read["point"])] = read
    path.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8")
    return found


def _key(point: Mapping[str, Any]) -> str:
    return json.dumps(dict(point), sort_keys=True)


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}


def _write(
    place: Path,
    name: str,
    experiment: Experiment,
    rows: Sequence[Mapping[str, Any]],
    claims: Sequence[Claim],
    found: Sequence[Mapping[str, Any]],
    *,
    quick: bool,
    pictures: bool,
) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    table = pa.Table.from_pylist([dict(row) for row in rows])
    pq.write_table(table, place / "rows.parquet")
    plain = [at for at, kind in enumerate(table.schema.types) if not pa.types.is_nested(kind)]
    pyarrow.csv.write_csv(table.select(plain), place / "rows.csv")
    seeds = seeds_text([one["point"] for one in found])
    told = {"experiment": name, "title": experiment.title, "paper": experiment.paper, "narrowcast": __version__}
    body = told | {
        "quick": quick,
        "points": len(found),
        "seeds": seeds,
        "claims": [asdict(claim) for claim in claims],
    }
    (place / "claims.json").write_text(json.dumps(body, indent=2) + "\n", encoding="utf-8")
    if pictures:
        told_of = f"{name}: {experiment.paper}; {seeds}"
        footer = f"{told_of}; bands are 95 % intervals of the mean; narrowcast {__version__}"
        figures = experiment.figures(rows)
        draw_png(figures, place / "figure.png", footer=footer)
        draw_page(f"{name}: {experiment.title}", figures, place / "figure.html", footer=footer)


def seeds_text(points: Sequence[Point]) -> str:
    """All seeds; a point with `samples` has so many from its own on.

    >>> seeds_text([{"seed": 0}, {"seed": 1}, {"seed": 2}]), seeds_text([{"seed": 5}, {"seed": 0}]), seeds_text([{}])
    ('seeds 0 to 2', 'seeds 0, 5', 'no seed')
    >>> seeds_text([{"seed": 0, "samples": 100}, {"seed": 100, "samples": 100}])
    'seeds 0 to 199'
    """
    blocks = ((point["seed"], point.get("samples", 1)) for point in points if "seed" in point)
    seeds = sorted({seed for first, n in blocks for seed in range(first, first + n)})
    if not seeds:
        return "no seed"
    if seeds[-1] - seeds[0] == len(seeds) - 1 and len(seeds) > 2:
        return f"seeds {seeds[0]} to {seeds[-1]}"
    return "seeds " + ", ".join(map(str, seeds))
