"""Fields inside fields, by their names with dots between: `payload.price`, as profiles and the key write them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from narrowcast.errors import InputError

# Objects in objects that are looked into.
DEEPEST = 8
OBJECT = "_row_json"
Path = tuple[str, ...]


def leaves(schema: StructType) -> dict[str, Path]:
    """The plain columns of a schema and the fields of its structs, each with the way to it; names with dots win.

    >>> from pyspark.sql.types import StringType, StructType
    >>> leaves(StructType().add("id", "string").add("payload", StructType().add("price", "double")))
    {'id': ('id',), 'payload.price': ('payload', 'price')}
    """
    found: dict[str, Path] = {field.name: (field.name,) for field in schema.fields if not _is_struct(field.dataType)}
    for field in schema.fields:
        if isinstance(field.dataType, StructType):
            for name, path in leaves(field.dataType).items():
                found.setdefault(f"{field.name}.{name}", (field.name, *path))
    return found


def _is_struct(kind: object) -> bool:
    return isinstance(kind, StructType)


def struct_cells(columns: Sequence[str], paths: Mapping[str, Path]) -> list[Column]:
    """Columns of a frame by the ways to them."""
    return [F.col(".".join(f"`{part}`" for part in paths.get(name, (name,)))).alias(name) for name in columns]


def top_level(columns: Collection[str], paths: Mapping[str, Path]) -> set[str]:
    """The columns of the file that hold these."""
    return {paths.get(name, (name,))[0] for name in columns}


def json_paths(values: DataFrame) -> dict[str, Path]:
    """All keys of JSON objects in the column `value`, those of objects inside too: one job, and one for each level."""
    found: dict[str, Path] = {}
    # Ways are told apart by a character that no line can hold.
    level = values.select(F.lit("").alias("way"), F.explode(F.from_json("value", "map<string,string>")))
    for _ in range(DEEPEST):
        told = level.select(F.concat("way", "key").alias("way"), F.col("value").startswith("{").alias("inner"))
        rows = told.distinct().collect()
        for row in rows:
            if not row["inner"]:
                path = tuple(row["way"].split("\n"))
                known = found.get(".".join(path))
                if known is None or len(path) < len(known):
                    found[".".join(path)] = path
        if not any(row["inner"] for row in rows):
            break
        inner = level.where(F.col("value").startswith("{"))
        way = F.concat("way", "key", F.lit("\n")).alias("way")
        level = inner.select(way, F.explode(F.from_json("value", "map<string,string>")))
    return dict(sorted(found.items()))


def json_cell(path: Path) -> Column:
    """A cell of the variant OBJECT by the way to it; null of JSON is null."""
    where = "$"
    for part in path:
        quote = '"' if "'" in part else "'"
        if quote in part:
            raise InputError(f"the column name {part} has both kinds of quotes", name=part, hint="rename it")
        where += f"[{quote}{part}{quote}]"
    cell = F.try_variant_get(OBJECT, where, "variant")
    return F.when(F.is_variant_null(cell), None).otherwise(cell)
