"""What an incremental answer remembers: the channels and all rows of the last answer, in a folder.

The rows are kept whole, not as digests: two rows that looked alike would make one of them never sent.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from narrowcast.data.answer.apart import CHANNEL, write_apart
from narrowcast.data.spark.output import read_manifest
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model.tables import MANIFEST
from narrowcast.plans.queries.api import Header, Query

if TYPE_CHECKING:
    from narrowcast.data.answer.answer import Merging

FORMAT = 1


@dataclass(frozen=True)
class Earlier:
    """The last answer: its channels, and where its rows are."""

    folder: Path
    headers: tuple[Header, ...]
    schema: StructType

    def rows(self, spark: SparkSession) -> DataFrame:
        """Its rows, each with its channel."""
        return spark.read.schema(self.schema).parquet(str(self.folder / "rows"))


@dataclass(frozen=True)
class Next:
    """A state on its way: complete beside the old one, which it replaces when told to."""

    half: Path
    target: Path
    schema: StructType

    def rows(self, spark: SparkSession) -> DataFrame:
        return spark.read.schema(self.schema).parquet(str(self.half / "rows"))

    def keep(self) -> None:
        """Take the old state's place."""
        old = None
        if self.target.exists():
            old = Path(tempfile.mkdtemp(prefix=f".{self.target.name}.old-", dir=self.target.parent))
            self.target.rename(old / "state")
        self.half.rename(self.target)
        if old is not None:
            shutil.rmtree(old)


def earlier(folder: str | Path, asked: Sequence[Query], merging: Merging, schema: StructType) -> Earlier | None:
    """The state, if it is of the same queries, parameters and columns; None makes a new start.

    A folder that holds something else is refused and stays as it is.
    """
    for column in schema.fields:
        kind = column.dataType.simpleString()
        if "map<" in kind or "variant" in kind:
            raise UnsupportedError(
                f"column {column.name!r} is {kind}: Spark cannot tell such rows apart", works=("without --incremental",)
            )
    place = Path(folder)
    if not place.exists() or (place.is_dir() and not any(place.iterdir())):
        return None
    if not (place / MANIFEST).is_file():
        raise InputError(
            f"{place}: not a folder of answer state (no {MANIFEST} in it)", name="incremental", got=str(place)
        )
    read = read_manifest(place)
    if read.get("kind") != "answer state" or read.get("format") != FORMAT:
        raise InputError(
            f"{place}: not a folder of answer state that this version reads", name="incremental", got=str(place)
        )
    if read["asked"] != _asked(asked, merging) or read["columns"] != schema.jsonValue():
        return None
    found = tuple(Header.from_json(text) for text in read["headers"])
    return Earlier(place, found, StructType.fromJson(read["schema"]))


def write_state(
    found: DataFrame, folder: str | Path, asked: Sequence[Query], merging: Merging, channels: Sequence[Header]
) -> Next:
    """The rows of this answer under another name beside the state; the one scan of the table is here."""
    target = Path(folder).absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(f".{target.name}.half-*"):
        shutil.rmtree(left, ignore_errors=True)
    half = Path(tempfile.mkdtemp(prefix=f".{target.name}.half-", dir=target.parent))
    write_apart(found, half / "rows")
    (half / "rows").mkdir(exist_ok=True)
    content = {
        "kind": "answer state",
        "format": FORMAT,
        "asked": _asked(asked, merging),
        "headers": [header.to_json() for header in channels],
        "schema": found.schema.jsonValue(),
        "columns": found.drop(CHANNEL).schema.jsonValue(),
    }
    (half / MANIFEST).write_text(json.dumps(content) + "\n", encoding="utf-8")
    half.chmod(0o755)
    return Next(half, target, found.schema)


def _asked(asked: Sequence[Query], merging: Merging) -> str:
    """A digest of who asks what and how it is merged."""
    whole = [[q.query, q.client, q.profile.text] for q in asked], asdict(merging)
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
