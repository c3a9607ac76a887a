"""Many profiles against batches of messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from narrowcast.errors import InputError, ProfileError
from narrowcast.profiles.algebra.symbolic import run
from narrowcast.profiles.kernels.matcher import match as match_codes
from narrowcast.profiles.match.codes import Encoder, encoder
from narrowcast.profiles.match.columns import array_of, columns_of
from narrowcast.profiles.match.compiled import Compiled, compiled
from narrowcast.profiles.match.residual import confirmed
from narrowcast.profiles.profile import Profile
from narrowcast.threads import thread_count

Ints = NDArray[np.int64]
Pairs = tuple[Ints, Ints]
Missing = Literal["error", "null"]
CHUNK = 32_768  # rows at a time, so that what they hold stays small
SMALL = 2_048  # fewer rows are not worth a thread


class Matcher:
    """An index over profiles that finds, for each message of a table, the profiles that match it.

    Good from a handful to millions of profiles. Messages go to the profiles that ask for their values
    (equality, IN), and bitsets over sorted bounds decide the rest, so a message costs far less than
    one test per profile. The answer is exactly that of `Profile.matches`, sorted by message and
    profile whatever the number of threads. Building takes O(n log n) time and O(n) memory for n
    profiles. A Matcher never changes and can be pickled.

    >>> import pyarrow as pa
    >>> matcher = Matcher(["symbol = 'IBM' AND price > 100", "price <= 100 OR symbol IS NULL"])
    >>> rows, profiles = matcher.match(pa.table({"symbol": ["IBM", "GE", None], "price": [101, 50, 100.5]}))
    >>> rows.tolist(), profiles.tolist()
    ([0, 1, 2], [0, 1, 1])
    """

    def __init__(self, profiles: Sequence[Profile | str]) -> None:
        self._compiled: Compiled = compiled(_parsed(profiles))
        self._encoders: dict[tuple[str, pa.DataType], Encoder] = {}

    @property
    def n_profiles(self) -> int:
        """How many profiles are compiled in."""
        return self._compiled.n_profiles

    @property
    def attributes(self) -> tuple[str, ...]:
        """Every attribute that the profiles name, sorted."""
        return tuple(self._compiled.uses)

    def __repr__(self) -> str:
        return f"Matcher({self.n_profiles} profiles over {', '.join(self.attributes) or 'no attribute'})"

    def __getstate__(self) -> dict[str, Any]:
        # Encoders hold copies of the constants and are made again when needed.
        return {"_compiled": self._compiled, "_encoders": {}}

    def match(
        self, table: pa.Table | pa.RecordBatch, *, missing: Missing = "error", threads: int | None = None
    ) -> Pairs:
        """(message index, profile index) of every match, as two arrays sorted by message, then profile.

        A column that profiles need and the table lacks is an error, or all null with `missing="null"`.
        `threads` defaults to the number of cores.
        """
        rows, profiles = zip(*self._parts(table, missing, threads), strict=True)
        return np.concatenate(rows), np.concatenate(profiles)

    def match_any(self, batch: pa.RecordBatch) -> Pairs:
        """As `match`, in this thread and for whatever columns there are, exactly as `Profile.matches` has each row.

        A column that is not there is null; one of another kind than a constant is unknown beside it.

        >>> Matcher(["p > 1", "p = 'x'", "q IS NULL"]).match_any(pa.record_batch({"p": [1, 2]}))[1].tolist()
        [2, 0, 2]
        """
        names = set(batch.schema.names)
        columns = {n: batch.column(n) if n in names else pa.nulls(batch.num_rows) for n in self._compiled.uses}
        found = []
        for start in range(0, max(batch.num_rows, 1), CHUNK):
            n_rows = min(CHUNK, batch.num_rows - start)
            arrays = {n: array_of(pa.chunked_array([c.slice(start, n_rows)])) for n, c in columns.items()}
            found.append(self._match(arrays, n_rows, start))
        rows, profiles = zip(*found, strict=True)
        return np.concatenate(rows), np.concatenate(profiles)

    def counts(
        self, table: pa.Table | pa.RecordBatch, *, missing: Missing = "error", threads: int | None = None
    ) -> Ints:
        """How many messages each profile matches, without holding all pairs at once."""
        total = np.zeros(self.n_profiles, np.int64)
        for _, profiles in self._parts(table, missing, threads):
            total += np.bincount(profiles, minlength=self.n_profiles)
        return total

    def _parts(self, table: pa.Table | pa.RecordBatch, missing: Missing, threads: int | None) -> Iterator[Pairs]:
        """The pairs of stretch after stretch of rows."""
        columns = columns_of(table, self._compiled.uses, missing)
        n_threads = _thread_count(threads)
        size = min(CHUNK, max(SMALL, -(-table.num_rows // n_threads)))
        starts = range(0, max(table.num_rows, 1), size)

        def part(start: int) -> Pairs:
            n_rows = min(size, table.num_rows - start)
            arrays = {name: array_of(column.slice(start, n_rows)) for name, column in columns.items()}
            return self._match(arrays, n_rows, start)

        if n_threads == 1 or len(starts) == 1:
            yield from map(part, starts)
            return
        with ThreadPoolExecutor(n_threads) as pool:
            # A few stretches ahead of the reader, so that `counts` holds no more than that.
            for first in range(0, len(starts), 4 * n_threads):
                yield from pool.map(part, starts[first : first + 4 * n_threads])

    def _match(self, arrays: dict[str, pa.Array], n_rows: int, first: int) -> Pairs:
        """The pairs of one stretch, whose first row is row `first` of the table."""
        codes = np.empty((n_rows, len(self._compiled.cells)), np.int32)
        for k, name in enumerate(self._compiled.cells):
            codes[:, k] = self._encoder(name, arrays[name].type)(arrays[name])
        counts, targets = match_codes(codes, self._compiled.index)
        if self._compiled.index.n_targets <= self.n_profiles and not self._compiled.programs:
            return np.repeat(np.arange(first, first + n_rows), counts), targets
        rows, profiles = self._settled(np.repeat(np.arange(n_rows), counts), targets, codes, arrays)
        return rows + first, profiles

    def _encoder(self, name: str, type_: pa.DataType) -> Encoder:
        made = self._encoders.get((name, type_))
        if made is None:
            made = self._encoders[name, type_] = encoder(self._compiled.cells[name], type_)
        return made

    def _settled(self, rows: Ints, targets: Ints, codes: NDArray[np.int32], arrays: dict[str, pa.Array]) -> Pairs:
        """Test the candidates of LIKE patterns, then run the programs of large profiles."""
        rows, targets = confirmed(rows, targets, self._compiled.likely, list(self._compiled.cells), codes, arrays)
        n_rows, n = codes.shape[0], self.n_profiles
        order = np.lexsort((rows, targets))
        rows, targets = rows[order], targets[order]

        def rows_of(target: int) -> Ints:
            first, end = np.searchsorted(targets, (target, target + 1))
            return rows[first:end]

        found = [rows[targets < n] * n + targets[targets < n]]
        for profile, program in self._compiled.programs.items():
            found.append(np.flatnonzero(run(program, n_rows, rows_of)) * n + profile)
        pairs = np.unique(np.concatenate(found))
        return pairs // n, pairs % n


def _thread_count(threads: int | None) -> int:
    if threads is None:
        return thread_count()
    if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
        raise InputError(f"threads must be a whole number of at least 1, got {threads!r}", name="threads", got=threads)
    return threads


def _parsed(profiles: Sequence[Profile | str]) -> list[Profile]:
    """Every profile, texts parsed once each; an error says which one."""
    if isinstance(profiles, (str, Profile)):
        raise InputError("profiles must be a list, got one profile", name="profiles", hint="write Matcher([profile])")
    known: dict[str, Profile] = {}
    result: list[Profile] = []
    for k, profile in enumerate(profiles):
        if isinstance(profile, str):
            try:
                profile = known.setdefault(profile, Profile.parse(profile)) if profile not in known else known[profile]
            except ProfileError as error:
                raise ProfileError(
                    f"profile {k}: {error.message}", text=error.text, position=error.position, hint=error.hint
                ) from None
        elif not isinstance(profile, Profile):
            raise InputError(
                f"profile {k} must be a Profile or text, got {type(profile).__name__}", name="profiles", got=profile
            )
        result.append(profile)
    return result
