"""Keeping Cyclone DDS to loopback where it is told to use loopback, and there to what it joined.

Whatever its configuration says, it binds the sockets it receives at to every address of the host. Packets from other
hosts would get in, unless the socket is tied to a device. And Linux gives such a socket the packets of every group that
any process of the host has joined, unless it is told not to. That is told on loopback alone: of a packet from another
host that one socket only wants, Linux 6.18 makes a present to any socket of the same port, in whatever process.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

log = logging.getLogger(__name__)
LOOPBACK = "lo"
_MULTICAST_ALL = 49  # of Linux, which the socket module has no name for
_FDS = Path("/proc/self/fd")


@contextmanager
def kept_to(interface: str) -> Iterator[None]:
    """Sockets for UDP that are opened in this block for loopback receive from there only, and only what they joined."""
    before = _open_to_all() if interface == LOOPBACK else set()
    yield
    for number in _open_to_all() - before if interface == LOOPBACK else ():
        _keep_to_joined(number)
        _tie(number)


def _open_to_all() -> set[int]:
    """The file descriptors of this process that are UDP sockets bound to every address."""
    names = [int(path.name) for path in _FDS.iterdir()] if _FDS.is_dir() else []
    return {number for number in names if _is_open_to_all(number)}


def _is_open_to_all(number: int) -> bool:
    with suppress(OSError), _borrowed(number) as found:
        udp = found.family == socket.AF_INET and found.type == socket.SOCK_DGRAM
        return udp and found.getsockname()[0] == "0.0.0.0" and found.getsockname()[1] != 0
    return False


@contextmanager
def _borrowed(number: int) -> Iterator[socket.socket]:
    """The socket of a file descriptor, which stays open; OSError if it is none."""
    found = socket.socket(fileno=number)
    try:
        yield found
    finally:
        found.detach()


def _keep_to_joined(number: int) -> None:
    """Else what other processes of this host joined costs a look at every packet."""
    with suppress(OSError), _borrowed(number) as found:
        found.setsockopt(socket.IPPROTO_IP, _MULTICAST_ALL, 0)


def _tie(number: int) -> None:
    try:
        with _borrowed(number) as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LOOPBACK.encode())
    except OSError as error:
        log.warning("a UDP socket of multicast cannot be tied to %s and is open to other hosts: %s", LOOPBACK, error)
