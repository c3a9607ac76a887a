"""Text tables as people have them: what is not UTF-8 or not separated by commas gets one line that says what to do."""

from __future__ import annotations

import bz2
import codecs
import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from narrowcast.errors import InputError

STEP = 1 << 20
OPENERS = {".gz": gzip.open, ".bz2": bz2.open}
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def check_text(source: Path, name: str, *, objects: bool = True) -> None:
    """Refuse a CSV or JSON-lines file, or one in a folder of parts, that would be read wrongly.

    Parameters
    ----------
    source : the file, packed or not, or a folder of them; anything else is passed over
    name : the table that it is
    objects : refuse JSON that does not begin with an object; whoever reads arrays, and sets bad lines aside, need not

    Raises
    ------
    InputError : bytes that are not UTF-8, a header whose columns are separated by something else than commas, or JSON
        that does not begin with an object
    """
    if source.is_dir():
        for part in sorted(source.rglob("*.csv*")):
            check_text(part, name, objects=objects)
        return
    form = source.suffixes[-2:] if source.suffix in OPENERS else source.suffixes[-1:]
    if not source.is_file() or not form or form[0] not in (".csv", ".jsonl", ".json", ".ndjson"):
        return
    try:
        first = _first_line(source, name)
        if form[0] != ".csv" and objects:
            _check_object(source, name)
    except (OSError, EOFError, zlib.error):
        return  # the reader says what is wrong with it
    if form[0] == ".csv" and "," not in first:
        for separator, words in SEPARATORS.items():
            if separator in first:
                raise InputError(
                    f"{source}: columns of the {name} table must be separated by commas, got {words}",
                    name=name,
                    got=first[:80],
                    hint=f'{_converted(source)}: python3 -c "import csv, sys; csv.writer(sys.stdout).writerows('
                    f'csv.reader(sys.stdin, delimiter={separator!r}))" < {source.name} > comma.csv',
                )


def _check_object(source: Path, name: str) -> None:
    """JSON must begin with an object: Arrow 26 ends the whole process if all there is is null."""
    for piece in _pieces(source):
        begin = piece.removeprefix(codecs.BOM_UTF8).lstrip()
        if begin[:1] == b"{":
            return
        if begin:
            got = begin[:40].decode(errors="replace").partition("\n")[0]
            hint = f"{_converted(source)}: jq -c '.[]' {source.name} > {name}.jsonl" if got[0] == "[" else None
            message = f"{source}: each line of the {name} table must be an object, got {got!r}"
            raise InputError(message, name=name, got=got, hint=hint)


def _first_line(source: Path, name: str) -> str:
    """The first line, once all bytes have been found to be UTF-8."""
    first, decoder, line = "", codecs.getincrementaldecoder("utf-8-sig")(), 1
    for piece in _pieces(source):
        try:
            text = decoder.decode(piece)
        except UnicodeDecodeError as error:
            line += piece[: error.start].count(b"\n")
            utf_16 = piece[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) and line == 1
            likely = "UTF-16" if utf_16 else "ISO-8859-1"
            raise InputError(
                f"{source}: the {name} table must be UTF-8, got another encoding in line {line}",
                name=name,
                got=likely,
                hint=f"{_converted(source)}: iconv -f {likely} -t UTF-8 {source.name} > utf8.csv",
            ) from None
        first = first or text.partition("\n")[0]
        line += piece.count(b"\n")
    return first


def _pieces(source: Path) -> Iterator[bytes]:
    opened: IO[bytes]
    with OPENERS.get(source.suffix, open)(source, "rb") as opened:  # type: ignore[operator]
        while piece := opened.read(STEP):
            yield piece


def _converted(source: Path) -> str:
    return "unpack and convert it" if source.suffix in OPENERS else "convert it"
