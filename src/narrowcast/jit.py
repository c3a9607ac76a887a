"""The one place where compile flags live.

Kernels release the GIL, so that threads use every core, and are cached on disk beside the code.
Division by zero follows NumPy (inf, nan) and reassociation is off: the same seed must give the same
plan on every machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., object])


def jit(function: F) -> F:
    """Compile a kernel."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
