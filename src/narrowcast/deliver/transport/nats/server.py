"""A NATS server of our own: loopback, credentials made on first start, JetStream in a data folder."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from narrowcast.deliver.transport.private_file import write_private
from narrowcast.errors import TransportError

USER = "narrowcast"
MOST_SAID = 1 << 20  # bytes of its log, at one look
MOST_STORE = 1 << 60  # no limit of its own, by what happens to be free when it starts: streams have theirs
NO_SPACE = (b"no space left on device", b"disk quota exceeded")
LEAST = (2, 11)  # reads several entries in one request
_CONFIGURATION = """\
server_name: narrowcast
listen: "{host}:{port}"
max_payload: 8MB
max_pending: 256MB
pid_file: "{folder}/nats.pid"
authorization {{ users: [
{{ user: {user}, password: "{password}" }}
{users}] }}
{tls}jetstream {{ store_dir: "{folder}/jetstream", sync_interval: {sync}, max_file_store: {most} }}
"""


# In a process of its own, not between fork and exec of ours: there threads of engines may hold any lock.
_DIE = "import ctypes, os, sys; ctypes.CDLL(None).prctl(1, 15); os.execv(sys.argv[1], sys.argv[1:])"
DYING_WITH_US = [sys.executable, "-I", "-S", "-c", _DIE] if sys.platform == "linux" else []


def server_binary() -> str:
    """Where nats-server is: the system's own on the PATH if it is new enough, else the one beside this Python."""
    beside = Path(sys.executable).with_name("nats-server")
    own = shutil.which("nats-server", path=os.pathsep.join(_places(beside.parent)))
    version = None if own is None else _version(own)
    if own is not None and version is not None and version >= LEAST:
        return own
    if beside.is_file():
        return str(beside)
    least, found = ".".join(map(str, LEAST)), ".".join(map(str, version or ()))
    what = f"nats-server must be {least} or newer, got {found} in {own}" if found else "nats-server is not installed"
    hint = f"pip install 'narrowcast[runtime]', or your system's package nats-server, {least} or newer"
    raise TransportError(f"{what}: {hint}", endpoint="nats-server")


def _places(without: Path) -> list[str]:
    """The folders of the PATH but the one where Python packages put their programs."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return [folder for folder in folders if folder and Path(folder).resolve() != without.resolve()]


@cache
def _version(binary: str) -> tuple[int, ...] | None:
    """Of `nats-server: v2.11.4`; None of something else."""
    try:
        done = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"v(\d+)\.(\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else None


@dataclass
class NatsServer:
    """The durable log's server, run from a data folder.

    The password and port are made once and kept there in files only their owner can read, so a server
    that was killed comes back as the same one. `sync` is JetStream's sync_interval: "always" puts an
    entry on disk before it is acknowledged; "2m" is faster and survives the death of the process, not
    of the machine.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int | None = None
    sync: str = "always"
    users: str = ""  # others who may connect, as the configuration has them
    tls: Mapping[str, Path] = field(default_factory=dict)  # the files of its cert, key and ca, which clients know it by
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    said: bytes = field(default=b"", repr=False)
    _seen: int = field(default=0, repr=False)  # bytes of its log

    @property
    def url_file(self) -> Path:
        return self.folder / "nats.url"

    @property
    def url(self) -> str:
        """With its credentials: for programs, not for logs."""
        return self.url_file.read_text(encoding="utf-8").strip().partition("\n")[0]

    async def start(self, *, timeout: float = 10.0) -> str:
        """Start it and return its URL once it answers."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        password = self._password()
        port = self.port or self._port()
        self._configure(password, port)
        scheme = "tls" if self.tls else "nats"
        write_private(self.url_file, f"{scheme}://{USER}:{password}@{self.host}:{port}\n{self.authority}")
        command = [*DYING_WITH_US, server_binary(), "-c", str(self.folder / "nats.conf")]
        with (self.folder / "nats.log").open("ab") as log:
            self._seen = log.tell()
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        await self._wait(port, timeout)
        return self.url

    def _configure(self, password: str, port: int) -> None:
        files = [f'{name}_file: "{self.tls[name]}"' for name in ("cert", "key") if name in self.tls]
        tls = f"tls {{ {', '.join(files)} }}\n" if files else ""
        text = _CONFIGURATION.format(
            host=self.host,
            port=port,
            folder=self.folder.resolve(),
            user=USER,
            password=password,
            users=self.users,
            tls=tls,
            sync=self.sync,
            most=MOST_STORE,
        )
        write_private(self.folder / "nats.conf", text)

    @property
    def authority(self) -> str:
        """The certificate of the authority, for clients."""
        return self.tls["ca"].read_text(encoding="utf-8") if "ca" in self.tls else ""

    async def admit(self, users: str, *, timeout: float = 10.0) -> None:
        """Let others in than before, while it runs; whoever is not among them any more loses the connection.

        Returns once the server says so; TransportError if it does not.
        """
        self.users = users
        self._configure(self._password(), int(urlsplit(self.url).port or 0))
        if self.process is None or self.process.poll() is not None:
            return
        path = self.folder / "nats.log"
        begun = path.stat().st_size
        self.process.send_signal(signal.SIGHUP)
        for _ in range(int(timeout / 0.02)):
            with path.open("rb") as log:
                log.seek(begun)
                if b"Reloaded server configuration" in log.read(MOST_SAID):
                    return
            await asyncio.sleep(0.02)
        raise TransportError(
            f"nats-server did not take the accounts within {timeout:g} s; see {path}", endpoint=str(path)
        )

    async def stop(self, *, timeout: float = 5.0) -> None:
        """End it for good."""
        await self.end(timeout=timeout)
        self.process = None

    async def end(self, *, timeout: float = 5.0) -> None:
        """Ask it to stop, then make it. Whoever looks after it may start it again."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(self.process.wait, timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await asyncio.to_thread(self.process.wait, timeout)

    def lacked_space(self) -> bool:
        """Whether it has said since the last look that it could not write. It then takes nothing until it starts anew.

        nats-server 2.15 neither answers an entry that it could not write nor tries again once there is room.
        """
        said = self.look()
        return any(words in said for words in NO_SPACE)

    def look(self) -> bytes:
        """What it has said since the last look, in whole lines."""
        with (self.folder / "nats.log").open("rb") as log:
            log.seek(self._seen)
            said = log.read(MOST_SAID)
        whole = said.rfind(b"\n") + 1 or (len(said) if len(said) == MOST_SAID else 0)
        self._seen += whole
        self.said = said[:whole]
        return self.said

    def _password(self) -> str:
        path = self.folder / "nats.password"
        if not path.exists():
            write_private(path, secrets.token_urlsafe(24) + "\n")
        return path.read_text(encoding="utf-8").strip()

    def _port(self) -> int:
        """The port of last time if it is still free, so that clients find the server again."""
        if self.url_file.exists():
            port = urlsplit(self.url).port or 0
            if is_free(self.host, port):
                return port
        return free_port(self.host)

    async def _wait(self, port: int, timeout: float) -> None:
        for _ in range(int(timeout / 0.02)):
            assert self.process is not None
            if self.process.poll() is not None:
                lines = (self.folder / "nats.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise TransportError(
                    f"nats-server exited at start: {lines[-1] if lines else 'it wrote nothing to its log'}",
                    endpoint=f"{self.host}:{port}",
                )
            if await _answers(self.host, port):
                return
            await asyncio.sleep(0.02)
        raise TransportError(f"nats-server did not answer within {timeout:g} s", endpoint=f"{self.host}:{port}")


async def _answers(host: str, port: int, patience: float = 1.0) -> bool:
    """Whether NATS greets there. Somebody else may have got the port, and say nothing."""
    try:
        reader, writer = await asyncio.wait_for(asyncio.open_connection(host, port), patience)
    except (OSError, TimeoutError):
        return False
    try:
        return (await asyncio.wait_for(reader.read(5), patience)).startswith(b"INFO")
    except (OSError, TimeoutError):
        return False
    finally:
        writer.close()


def free_port(host: str = "127.0.0.1") -> int:
    """A TCP port nobody listens on."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
    return port


def is_free(host: str, port: int) -> bool:
    """Whether a TCP port can be listened on."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True


def die_with_parent() -> None:
    """Have Linux end this process when the one that started it is gone, however it went."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGTERM)
