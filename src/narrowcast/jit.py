"""The one place where compile flags live.

Kernels release the GIL, so that threads use every core, and are cached on disk beside the code, or in a private
temporary folder for a user who can write neither there nor at home.
Division by zero follows NumPy (inf, nan) and reassociation is off: the same seed must give the same
plan on every machine.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

F = TypeVar("F", bound=Callable[..., object])


def _choose_cache() -> None:
    """Numba gives up where no place for its cache is writable; then it is told one before it is imported."""
    if "NUMBA_CACHE_DIR" in os.environ or os.access(Path(__file__).parent, os.W_OK):
        return
    home = Path.home() if "HOME" in os.environ else None
    if home is None or not os.access(home, os.W_OK):
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="narrowcast-kernels-")


_choose_cache()
import numba  # noqa: E402


def jit(function: F) -> F:
    """Compile a kernel."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
