"""A folder that is there complete or not at all.

Files go to a folder under another name beside the one to be, which is renamed when all is in it. A run
that is killed leaves only the other name, and the next run removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from narrowcast.errors import InputError


@contextmanager
def whole_folder(target: str | Path, *, marker: str, overwrite: bool = False) -> Iterator[Path]:
    """A folder to write into; it takes its name when the block ends well and is removed if not.

    `marker` is the file that such a folder always has. What is already there is replaced only if
    `overwrite` is given and it has that file: somebody else's folder stays as it is.

    >>> with tempfile.TemporaryDirectory() as place:
    ...     with whole_folder(f"{place}/result", marker="done.json") as half:
    ...         _ = (half / "done.json").write_text("{}")
    ...     os.listdir(place)
    ['result']
    """
    place = Path(target).absolute()
    may_write(place, marker, overwrite)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        _sweep(place)
        half = Path(tempfile.mkdtemp(prefix=f".{place.name}.half-{os.getpid()}-", dir=place.parent))
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {error.strerror}", name="out", got=str(target)) from None
    try:
        yield half
        if not (half / marker).is_file():
            raise RuntimeError(f"a folder of this kind has a {marker}, and none was written")
        half.chmod(0o755)
        _put(half, place)
    finally:
        shutil.rmtree(half, ignore_errors=True)


def may_write(place: Path, marker: str, overwrite: bool) -> None:
    """Refuse a place where something else is, or an earlier result that may not be replaced."""
    if place.exists() and not place.is_dir():
        raise InputError(f"{place}: out must be a folder, got a file", name="out", got=str(place))
    if not place.exists() or not any(place.iterdir()):
        return
    if not (place / marker).is_file():
        raise InputError(
            f"{place}: the folder is not empty and has no {marker}, so it will not be overwritten",
            name="out",
            got=str(place),
            hint="use another name",
        )
    if not overwrite:
        raise InputError(f"{place} already exists", name="out", got=str(place), hint="use --overwrite or a new name")


def _sweep(place: Path) -> None:
    """Remove what killed runs left; the number of the process that writes is in the name."""
    for left in place.parent.glob(f".{place.name}.half-*"):
        try:
            os.kill(int(left.name.rsplit("-", 2)[1]), 0)
        except (ValueError, ProcessLookupError):
            shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue  # it runs, as somebody else


def _put(half: Path, place: Path) -> None:
    """Rename; what was there goes only after the new folder is in its place."""
    if not place.exists():
        half.rename(place)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{place.name}.old-", dir=place.parent))
    place.rename(old / place.name)
    try:
        half.rename(place)
    except OSError:
        (old / place.name).rename(place)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
