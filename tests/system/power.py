"""A disk whose power can fail: ext4 in an image on a loop device, and copies of the image as they are at an instant.

What the server wrote and did not sync is in the kernel's memory, not in the image. The server is stopped between two of
its calls, wherever it happens to be, and a copy counts only if nothing was written to the device meanwhile: so it
is what the disk would have held. Blocks that a real disk keeps in a cache of its own are taken for written.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SIZE = 256 << 20


class ImageDisk:
    """A mounted image."""

    def __init__(self, image: Path, place: Path, device: str) -> None:
        self.image, self.place = image, place
        self._stat = Path("/sys/block") / Path(device).name / "stat"
        self.disturbed = 0  # copies that did not count

    def lose_power(self, pid: int, copy: Path) -> None:
        """What the disk holds at this instant, as a copy of the image."""
        while True:
            os.kill(pid, signal.SIGSTOP)
            try:
                _stopped(pid)
                before = self._written()
                subprocess.run(["cp", "--sparse=always", str(self.image), str(copy)], check=True)
                if before is not None and before == self._written():
                    return
                self.disturbed += 1
            finally:
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.05)

    def _written(self) -> int | None:
        """How many writes are done; None while one is under way."""
        fields = self._stat.read_text().split()
        return int(fields[4]) + int(fields[15]) if fields[8] == "0" else None


def _stopped(pid: int) -> None:
    """Until no thread of a process runs or is in a call."""
    tasks = Path(f"/proc/{pid}/task")
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if all((task / "stat").read_text().rpartition(")")[2].split()[0] == "T" for task in tasks.iterdir()):
            return
        time.sleep(0.001)
    raise TimeoutError(f"process {pid} does not stop")


@contextmanager
def image_disk(folder: Path) -> Iterator[ImageDisk]:
    """A new one; OSError where none can be made."""
    image, place = folder / "image", folder / "disk"
    with image.open("wb") as out:
        out.truncate(SIZE)
    _run("mkfs.ext4", "-q", "-F", str(image))
    device = _run("losetup", "-f", "--show", str(image))
    try:
        with _mounted(device, place):
            yield ImageDisk(image, place, device)
    finally:
        _run("losetup", "-d", device)


@contextmanager
def started_again(copy: Path, place: Path) -> Iterator[Path]:
    """A copy, mounted as after the power came back: the file system repairs itself from its journal."""
    device = _run("losetup", "-f", "--show", str(copy))
    try:
        with _mounted(device, place):
            yield place
    finally:
        _run("losetup", "-d", device)


@contextmanager
def _mounted(device: str, place: Path) -> Iterator[None]:
    place.mkdir(exist_ok=True)
    _run("mount", device, str(place))
    try:
        yield
    finally:
        for _ in range(50):
            if not subprocess.run(["umount", str(place)], capture_output=True).returncode:
                break
            time.sleep(0.1)


def _run(*command: str) -> str:
    if shutil.which(command[0]) is None:
        raise OSError(f"there is no {command[0]}")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout.strip()
