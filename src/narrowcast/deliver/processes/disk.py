"""Whether the disk of a data folder has room for its log. No NATS: what to do about it is the supervisor's."""

from __future__ import annotations

import shutil
from pathlib import Path

SHARE, LEAST, MOST = 0.01, 8 << 20, 256 << 20  # of the disk, kept for the registry and the server itself
NOTHING = 64 << 10  # bytes; with no more free, the server has met the end of the disk or is about to


class Disk:
    """Looks at the free space of a folder's disk.

    `full`: less is free than the reserve, which is 1 % of the disk, at least 8 MiB and at most 256 MiB; until twice as
    much is. `touched`: it was full to the last byte at some look; whoever writes there may have been refused.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.full = self.touched = False
        self.free = 0

    def look(self) -> bool:
        """Whether it is full now."""
        total, _, self.free = shutil.disk_usage(self.folder)
        reserve = min(max(int(total * SHARE), LEAST), MOST, total // 4)
        self.full = self.free < (2 * reserve if self.full else reserve)
        self.touched |= self.free < NOTHING
        return self.full
