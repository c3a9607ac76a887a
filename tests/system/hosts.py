"""Hosts that are network namespaces on one bridge with IGMP snooping: real kernels, real joins, no cables.

Every host has an interface `eth0` and the address 10.77.0.<number>. The bridge has a namespace of its own, so
nothing of this machine's network is touched. Packets are counted per destination by iptables at each host.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

PROBE = "239.254.254.254"
NETWORK = ipaddress.ip_network("10.77.0.0/24")


class Hosts:
    """A bridge and `n` namespaces; use it as a context manager, so that they go whatever happens."""

    def __init__(self, n: int, *, memberships: int | None = None, snooping: bool = True) -> None:
        self.n, self.snooping = n, snooping
        self.tag = f"nc{os.getpid()}"
        self.switch = f"{self.tag}-sw"
        self.memberships = memberships
        self.running: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Hosts:
        try:
            self._plug()
        except BaseException:
            self.cleanup()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.cleanup()

    def name(self, host: int) -> str:
        return f"{self.tag}-{host}"

    def address(self, host: int) -> str:
        return str(NETWORK[host + 1])

    def command(self, command: Sequence[str], host: int) -> list[str]:
        """A command that runs this one in a host."""
        return ["ip", "netns", "exec", self.name(host), *command]

    @contextmanager
    def inside(self, host: int) -> Iterator[None]:
        """This thread, and the threads and processes that it starts meanwhile, have the network of a host."""
        with Path("/proc/thread-self/ns/net").open() as home, Path(f"/run/netns/{self.name(host)}").open() as there:
            _enter(there.fileno())
            try:
                yield
            finally:
                _enter(home.fileno())

    def run(self, command: Sequence[str], host: int, *, check: bool = True, **options: Any) -> str:
        """Run a command in a host to its end, and return what it prints."""
        done = subprocess.run(
            self.command(command, host), capture_output=True, text=True, timeout=60, check=False, **options
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)} at host {host}: {done.stderr.strip()}")
        return done.stdout

    def start(
        self, command: Sequence[str], host: int, *, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[str]:
        """Start a command in a host; it is ended with the hosts at the latest."""
        process = subprocess.Popen(
            self.command(command, host),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, **(env or {})},
        )
        self.running.append(process)
        return process

    def memberships_of(self, host: int, interface: str = "eth0") -> set[str]:
        """The multicast addresses the host's kernel has joined, from its membership table."""
        found, here = set(), False
        for line in self.run(["cat", "/proc/net/igmp"], host).splitlines()[1:]:
            if not line.startswith("\t"):
                here = line.split()[1] == interface
            elif here:
                found.add(str(ipaddress.ip_address(int.from_bytes(bytes.fromhex(line.split()[0]), "little"))))
        return found - {"224.0.0.1"}

    def multicast_packets(self, host: int) -> int:
        """Packets to addresses that the host has joined, discovery and the bridge's questions among them."""
        told = self.run(["cat", "/proc/net/netstat"], host).splitlines()
        names, values = [row.split() for row in told if row.startswith("IpExt:")]
        return int(values[names.index("InMcastPkts")])

    def wait_for_snooping(self, timeout: float = 15.0) -> None:
        """Until the bridge trusts what it learned: right after its start it floods everything.

        Tried, not assumed: a packet to an address that nobody joined must not arrive anywhere.
        """
        self.count([PROBE])
        end = time.monotonic() + timeout
        while self.floods():
            if time.monotonic() > end:
                raise RuntimeError("the bridge still floods")

    def floods(self) -> bool:
        """Whether a packet to PROBE, which nobody joined, arrives at other hosts; PROBE must be counted."""
        before = [self.counters(host)[PROBE] for host in range(1, self.n)]
        self.run(["bash", "-c", f"echo > /dev/udp/{PROBE}/9"], 0)
        time.sleep(0.05)
        return before != [self.counters(host)[PROBE] for host in range(1, self.n)]

    def count(self, addresses: Iterable[str]) -> None:
        """Count from now on, at every host, the packets that arrive for each of these addresses.

        In the raw table: before the kernel asks whether anybody joined.
        """
        rules = "".join(f"-A PREROUTING -i eth0 -d {address}/32\n" for address in addresses)
        for host in range(self.n):
            self.run(["iptables-restore", "--noflush"], host, input=f"*raw\n{rules}COMMIT\n")

    def counters(self, host: int) -> dict[str, int]:
        """Packets that arrived at the host's interface for each address counted."""
        shown = self.run(["iptables", "-t", "raw", "-L", "PREROUTING", "-v", "-n", "-x"], host)
        rows = [line.split() for line in shown.splitlines()[2:]]
        return {row[-1]: int(row[0]) for row in rows if row and re.fullmatch(r"[\d.]+", row[-1])}

    def end_all(self) -> None:
        """End what was started; the hosts stay."""
        for process in self.running:
            if process.poll() is None:
                process.kill()
            with suppress(subprocess.TimeoutExpired):  # a grandchild may hold the pipe
                process.communicate(timeout=10)
        self.running.clear()

    def cleanup(self) -> None:
        """End what was started and remove the namespaces; their interfaces and the bridge go with them."""
        self.end_all()
        there = {path.name for path in Path("/run/netns").glob(f"{self.tag}-*")}
        for space in sorted(there):
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True, timeout=30)

    def _plug(self) -> None:
        lines = [f"netns add {self.switch}"]
        # A bridge floods until its own query could have been answered: so allow little time, then start to ask.
        kind = f"bridge mcast_snooping {int(self.snooping)} mcast_query_response_interval 20"
        lines += [f"-n {self.switch} link add br0 type {kind}"]
        for host in range(self.n):
            name = self.name(host)
            lines += [
                f"netns add {name}",
                f"-n {self.switch} link add p{host} type veth peer name eth0 netns {name}",
                f"-n {self.switch} link set p{host} master br0 up",
                f"-n {name} address add {self.address(host)}/24 dev eth0",
                f"-n {name} link set lo up",
                f"-n {name} link set eth0 up",
                f"-n {name} route add 224.0.0.0/4 dev eth0",
            ]
        lines += [f"-n {self.switch} link set br0 up type bridge mcast_querier 1"]
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True, capture_output=True, text=True, timeout=30)
        for host in range(self.n) if self.memberships is not None else ():
            self.run(["sysctl", "-qw", f"net.ipv4.igmp_max_memberships={self.memberships}"], host)


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, 0):
        raise OSError(ctypes.get_errno(), "setns")
