"""What large entries and frames leave behind stays with the process.

By default glibc gives memory of such sizes back to Linux when it is freed, and has every page of the next entry made
anew (docs/decisions/0171).
"""

from __future__ import annotations

import ctypes
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, malloc.h
KEPT_BYTES = 64 << 20  # free memory that stays
LARGEST = 16 << 20  # what is larger is mapped by itself, and given back


@cache
def keep_freed_memory() -> bool:
    """Do so, where the C library is glibc; whether it is."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return False
    return bool(mallopt(_TRIM_THRESHOLD, KEPT_BYTES)) and bool(mallopt(_MMAP_THRESHOLD, LARGEST))
