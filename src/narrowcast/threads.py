"""How many threads to start. Kernels release the GIL, so threads can use every core."""

from __future__ import annotations

import os


def thread_count() -> int:
    """As many as OMP_NUM_THREADS says, like the numerical libraries; otherwise one for each core given to us."""
    told = os.environ.get("OMP_NUM_THREADS", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
