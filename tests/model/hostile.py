"""Hostile tables: sound Parquet, CSV and JSON files, damaged, and a few made to hurt; read in a process apart.

`python hostile.py FIRST COUNT FOLDER` reads so many and prints a line of JSON for each: what came of it, and how long
it took.
"""

from __future__ import annotations

import gzip
import json
import resource
import sys
import time
from itertools import islice
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from narrowcast.cli.deliver import publish
from narrowcast.errors import InputError

MOST_BYTES = 1500 << 20  # of the whole process, Arrow and all


def sound(rng: Random) -> tuple[str, bytes]:
    """A file's ending and its bytes."""
    rows = rng.choice((1, 3, 50))
    table = pa.table({
        "flow": [f"f{rng.randrange(9)}" for _ in range(rows)],
        "subscriber": [f"u{rng.randrange(9)}" for _ in range(rows)],
        "rate": [rng.random() for _ in range(rows)],
        "at": pa.array([rng.randrange(1 << 40) for _ in range(rows)], pa.timestamp("us")),
        "deep": [[{"a": k}] for k in range(rows)],
    })  # fmt: skip
    form = rng.choice(("parquet", "parquet", "csv", "jsonl", "json", "csv.gz", "jsonl.gz"))
    if form == "parquet":
        sink = pa.BufferOutputStream()
        packing = rng.choice(("snappy", "zstd", "gzip", "none"))
        pq.write_table(table, sink, compression=packing, use_dictionary=rng.random() < 0.5, row_group_size=20)
        return form, sink.getvalue().to_pybytes()
    plain = table.drop(["deep", "at"]).to_pylist()
    if form.startswith("csv"):
        text = "flow,subscriber,rate\n" + "".join(f"{r['flow']},{r['subscriber']},{r['rate']}\n" for r in plain)
    else:
        text = "".join(json.dumps(row) + "\n" for row in plain)
    data = text.encode()
    return form, gzip.compress(data) if form.endswith(".gz") else data


def damaged(data: bytes, rng: Random) -> bytes:
    """Flipped, cut, doubled, with other bytes in it, or with numbers that are too large."""
    found = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 40))):
        at = rng.randrange(len(found)) if found else 0
        if rng.random() < 0.4:
            at = max(0, len(found) - rng.randrange(1, 300)) if found else 0  # Parquet's footer is at the end
        kind = rng.randrange(7)
        if kind == 0 and found:
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del found[at:]
        elif kind == 2:
            found[at:at] = found[at : at + rng.randrange(1, 400)] * rng.choice((1, 1, 30))
        elif kind == 3:
            found[at : at + 8] = rng.choice((b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7))
        elif kind == 4:
            found[at:at] = rng.choice(
                (b"\0", b"\xff\xfe", b'"', b"\n", b",", b"{", b"\xef\xbb\xbf", b"9" * 400, b"PAR1")
            )
        elif kind == 5:
            found[at : at + 1] = bytes([rng.randrange(256)])
        else:
            del found[at : at + rng.randrange(1, 60)]
    return bytes(found)


def made_to_hurt(rng: Random) -> tuple[str, bytes]:
    """Deep, long, large once unpacked, or not what its name says."""
    cases: list[tuple[str, bytes]] = [
        ("jsonl", b'{"flow":' + b"[" * 100_000), ("jsonl", b'{"flow":' * 50_000),
        ("json", b"[" * 200_000 + b"]" * 200_000), ("jsonl", b'{"a":1,"a":2}\n'),
        ("jsonl", b'{"flow": ' + b"9" * 50_000 + b"}\n"), ("jsonl", b'{"a":1e999}\n{"a":-1e999}\n'),
        ("csv", b"a," * 20_000 + b"\n" + b"1," * 20_000), ("csv", b'"' * 100_001), ("csv", b"a\n" + b"x" * 5_000_000),
        ("csv", b"flow,flow,flow\n1,2,3\n"), ("csv", b"\n" * 100_000), ("csv", b"=cmd|' /C calc'!A0,b\n1,2\n"),
        ("csv.gz", gzip.compress(b"a,b\n" + b"0,0\n" * 2_000_000)), ("jsonl.gz", gzip.compress(b" " * 30_000_000)),
        ("parquet", b"PAR1" + b"\xff" * 100 + b"\xff\xff\xff\x7fPAR1"), ("parquet", b"PAR1PAR1"), ("parquet", b""),
        ("csv", b""),
        ("json", b""), ("csv.gz", b"\x1f\x8b" + b"\0" * 50), ("parquet", b"flow,rate\n1,2\n"), ("csv", b"PAR1\0\0PAR1"),
        ("jsonl", b"[1,2,3]\n"), ("jsonl", b"null\n"), ("json", b'"text"'), ("jsonl", b'{"\\ud800": 1}\n'),
    ]  # fmt: skip
    return rng.choice(cases)


def hostile(number: int) -> tuple[str, bytes]:
    """The file of a number."""
    rng = Random(number)
    if rng.random() < 0.05:
        return made_to_hurt(rng)
    form, data = sound(rng)
    return form, damaged(data, rng)


def outcome(path: Path) -> str:
    """What comes of publishing a table: its rows as messages are made of them, or the one error that says why not."""
    try:
        rows = len(list(islice(publish._rows(str(path)), 2000)))
    except InputError as error:
        return "refused" if "\n" not in str(error).strip() else f"several lines: {error}"
    return f"read {rows > 0}"


def main(first: int, count: int, folder: Path) -> None:
    for number in range(first, first + count):
        form, data = hostile(number)
        path = folder / f"t{number}.{form}"
        path.write_bytes(data)
        print(json.dumps({"number": number, "begun": True}), flush=True)
        begun, spent = time.perf_counter(), time.process_time()
        try:
            found = outcome(path)
        except Exception as error:  # which is what we look for
            found = f"{type(error).__name__}: {error}"
        seconds, cpu = time.perf_counter() - begun, time.process_time() - spent
        path.unlink()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
        told = {"number": number, "form": form, "found": found, "seconds": seconds, "cpu": cpu, "peak": peak}
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
