"""Folders on object stores and file systems elsewhere, by their URLs: complete with their manifest, or not there.

Nothing can be renamed on an object store. So a folder is written here first; then its files are put there, the
manifest last, and whoever reads takes only a folder that has one, whose files have the sizes that it says.
"""

from __future__ import annotations

import atexit
import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from narrowcast.errors import InputError
from narrowcast.model.tables import MANIFEST, key_said, local_path
from narrowcast.model.whole_folder import may_write

if TYPE_CHECKING:
    from pyarrow import fs

SCHEMES = ("s3", "s3a", "gs", "hdfs")
# Put first and removed last: a folder that has it and no manifest is what a run left that was killed.
HALF = "_half.json"
SIZES = "sizes_bytes"


@dataclass(frozen=True)
class StorePlace:
    """A folder, or a file, elsewhere."""

    url: str
    system: fs.FileSystem
    path: str
    name: str = "folder"

    @classmethod
    def at(cls, url: str, name: str) -> StorePlace:
        """By its URL; one that cannot be reached by Arrow's file systems is an InputError."""
        import pyarrow as pa
        from pyarrow import fs

        whole = as_url(url)
        try:
            system, path = fs.FileSystem.from_uri(_for_arrow(whole))
        except (OSError, ValueError, NotImplementedError, pa.ArrowException) as error:
            _refuse(name, whole, error)
        return cls(whole, system, path.rstrip("/"), name)

    def files(self) -> dict[str, int]:
        """The files below, by their names from here, with their sizes; the file itself by "" if it is one."""
        from pyarrow import fs

        try:
            top = self.system.get_file_info(self.path)
            if top.type == fs.FileType.File:
                return {"": int(top.size)}
            found = self.system.get_file_info(fs.FileSelector(self.path, allow_not_found=True, recursive=True))
        except OSError as error:
            _refuse(self.name, self.url, error)
        return {
            info.path.removeprefix(self.path).strip("/"): int(info.size)
            for info in found
            if info.type == fs.FileType.File
        }

    def has(self, name: str) -> bool:
        """Whether there is such a file below."""
        from pyarrow import fs

        try:
            return bool(self.system.get_file_info(self._at(name)).type == fs.FileType.File)
        except OSError as error:
            _refuse(self.name, self.url, error)

    def read(self, name: str) -> bytes:
        """A file below, whole."""
        with self.system.open_input_stream(self._at(name)) as file:
            return bytes(file.read())

    def write(self, name: str, content: bytes) -> None:
        """A file below, there when this returns."""
        with self.system.open_output_stream(self._room(name)) as file:
            file.write(content)

    def fetch(self, name: str, to: Path) -> None:
        """A copy of a file below on this machine."""
        to.parent.mkdir(parents=True, exist_ok=True)
        with self.system.open_input_stream(self._at(name)) as file, to.open("wb") as copy:
            shutil.copyfileobj(file, copy, 4 << 20)

    def put(self, name: str, file: Path) -> None:
        """A copy of a file of this machine, below."""
        with file.open("rb") as given, self.system.open_output_stream(self._room(name)) as copy:
            shutil.copyfileobj(given, copy, 4 << 20)

    def delete(self, name: str) -> None:
        """Remove a file below; one that is gone already is as well."""
        if self.has(name):
            self.system.delete_file(self._at(name))

    def _room(self, name: str) -> str:
        """Where a file goes, its folder made where folders are something of their own."""
        place = self._at(name)
        if self.system.type_name not in ("s3", "gcs"):
            self.system.create_dir(place.rpartition("/")[0])
        return place

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path


def is_url(given: str | Path) -> bool:
    """Whether a place is on a file system elsewhere: by any URL but file:.

    >>> is_url("s3a://bucket/market"), is_url("file:///tmp/market"), is_url("market")
    (True, False, False)
    """
    return re.match(r"(?!file:)[A-Za-z][A-Za-z0-9+.-]+:/", str(given)) is not None


def as_url(given: str | Path) -> str:
    """A URL as it was given: a Path has made one slash of two.

    >>> as_url(Path("s3://bucket/market"))
    's3://bucket/market'
    """
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]+):/+", r"\1://", str(given)).rstrip("/")


def _for_arrow(url: str) -> str:
    """Arrow knows s3a as s3, and tries for a quarter of an hour to reach Google's store unless told otherwise."""
    url = re.sub("^s3a://", "s3://", url)
    if not url.startswith("gs://") or "retry_limit_seconds=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}retry_limit_seconds=20"


def reachable(given: str | Path) -> bool:
    """Whether Arrow has a file system for a URL.

    >>> reachable("s3a://bucket/market"), reachable("kafka://host:9092/topic")
    (True, False)
    """
    return as_url(given).partition("://")[0].lower() in SCHEMES


def check_place(given: str | Path, name: str) -> str | Path:
    """A folder on this machine as its path, one elsewhere as its URL; what nobody could write is an InputError.

    >>> check_place("ftp://host/measured", "out")
    Traceback (most recent call last):
    narrowcast.errors.InputError: out must be a folder, or a URL of s3, s3a, gs, hdfs, file, got ftp://host/measured
    """
    if not is_url(given):
        return local_path(given, name)
    url = as_url(given)
    if not reachable(url):
        known = ", ".join((*SCHEMES, "file"))
        raise InputError(f"{name} must be a folder, or a URL of {known}, got {url}", name=name, got=url)
    return url


@contextmanager
def destination(out: str | Path, *, overwrite: bool = False) -> Iterator[tuple[Path, bool]]:
    """The folder to write on this machine, and whether something there may be replaced.

    A local folder is itself. For a URL it is a temporary one, which is put there when the block ends well. That the
    place can be written, and that nothing else is there, is found out at once.
    """
    place = check_place(out, "out")
    if isinstance(place, Path):
        may_write(place.absolute(), MANIFEST, overwrite)
        yield place, overwrite
        return
    store = StorePlace.at(place, "out")
    _claim(store, overwrite)
    with tempfile.TemporaryDirectory(prefix="narrowcast-out-") as folder:
        half = Path(folder) / "out"
        try:
            yield half, False
            _put_all(half, store)
        except BaseException:
            _withdraw(store)
            raise


def _claim(store: StorePlace, overwrite: bool) -> None:
    """Find out whether the folder may be written, by putting the first file there."""
    there = store.files()
    if "" in there:
        raise InputError(f"out must be a folder, got a file: {store.url}", name="out", got=store.url)
    if there and MANIFEST not in there and HALF not in there:
        raise InputError(
            f"{store.url}: the folder is not empty and has no {MANIFEST}, so it will not be overwritten",
            name="out",
            got=store.url,
            hint="use another name",
        )
    if MANIFEST in there and not overwrite:
        raise InputError(f"{store.url} already exists", name="out", got=store.url, hint="use --overwrite or a new name")
    about = {"narrowcast": f"incomplete while there is no {MANIFEST}"}
    try:
        store.write(HALF, json.dumps(about).encode())
    except OSError as error:
        _refuse("out", store.url, error)


def _put_all(half: Path, store: StorePlace) -> None:
    """Every file, the manifest last; what was there before is no result from the first file on."""
    made = sorted(path.relative_to(half).as_posix() for path in half.rglob("*") if path.is_file())
    if MANIFEST not in made:
        raise RuntimeError(f"a folder of this kind has a {MANIFEST}, and none was written")
    about = json.loads((half / MANIFEST).read_text(encoding="utf-8"))
    about[SIZES] = {name: (half / name).stat().st_size for name in made if name != MANIFEST}
    try:
        before = set(store.files())
        store.delete(MANIFEST)
        for name in about[SIZES]:
            store.put(name, half / name)
        for name in sorted(before - {*made, HALF}):
            store.delete(name)
        store.write(MANIFEST, (json.dumps(about, indent=2, sort_keys=True) + "\n").encode())
        store.delete(HALF)
    except OSError as error:
        _refuse("out", store.url, error)


def _withdraw(store: StorePlace) -> None:
    """What can still be removed after a failure: all of it, unless an earlier result is still whole."""
    try:
        there = store.files()
        whole = MANIFEST in there
        for name in [HALF] if whole else [*(name for name in there if name != HALF), HALF]:
            store.delete(name)
    except (OSError, InputError):
        return  # it stays incomplete, and the next run replaces it


@contextmanager
def fetched(given: str | Path, name: str) -> Iterator[Path]:
    """A folder or file as one on this machine: a copy while the block runs if it is elsewhere."""
    place = check_place(given, name)
    if isinstance(place, Path):
        yield place
        return
    with tempfile.TemporaryDirectory(prefix="narrowcast-inputs-") as folder:
        yield copy_of(place, Path(folder), name)


def copy_of(url: str, folder: Path, name: str) -> Path:
    """A copy, in a folder of this machine, of all that is at a URL, under its own name."""
    store = StorePlace.at(url, name)
    target = folder / url.split("?")[0].rsplit("/", 1)[-1]
    found = store.files()
    if not found:
        raise InputError(f"{store.url}: no such file or folder", name=name, got=store.url)
    try:
        for below in found:
            store.fetch(below, target / below if below else target)
    except OSError as error:
        _refuse(name, store.url, error)
    return target


def key_beside_url(table: str | Path) -> tuple[str, ...] | None:
    """The flow key that the manifest beside a table elsewhere says; None if there is none, or nobody can say."""
    if not reachable(table):
        return None
    folder, _, _ = as_url(table).split("?")[0].rpartition("/")
    store = StorePlace.at(folder, "messages")
    return key_said(store.read(MANIFEST).decode(), f"{folder}/{MANIFEST}") if store.has(MANIFEST) else None


def whole_copy(url: str, folder: Path, name: str) -> Path:
    """A copy of a result that `destination` has put there; one that is not complete is an InputError."""
    store = StorePlace.at(url, name)
    there = store.files()
    if MANIFEST not in there:
        raise InputError(f"{store.url}: no complete result here (no {MANIFEST} in it)", name=name, got=store.url)
    sizes: dict[str, Any] = json.loads(store.read(MANIFEST)).get(SIZES, {})
    wrong = [file for file, size in sizes.items() if there.get(file) != size]
    if wrong:
        message = f"{store.url}: not complete: {wrong[0]} is not the file that its {MANIFEST} tells of"
        raise InputError(message, name=name, got=store.url, hint="somebody else may be writing there")
    return copy_of(url, folder, name)


def whole_here(folder: str | Path, name: str) -> Path:
    """A folder of results on this machine; of one elsewhere a copy, if it is complete, until the process ends."""
    place = check_place(folder, name)
    return place if isinstance(place, Path) else _kept_copy(place, name)


@cache
def _kept_copy(url: str, name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=f"narrowcast-{name}-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return whole_copy(url, folder, name)


def _refuse(name: str, url: str, error: BaseException) -> NoReturn:
    line = " ".join(str(error).split())[:300]
    raise InputError(f"{name} cannot be reached: {url}: {line}", name=name, got=url) from None
