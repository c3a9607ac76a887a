"""Cyclone DDS's entities, one participant with its readers and writers, and bytes in and out of them.

Bytes go through the wheel's low-level calls: its dataclasses manage a third of the rate. That is why
the extra pins the exact version.
"""

from __future__ import annotations

from struct import Struct
from threading import Lock
from typing import Any

from narrowcast.deliver.transport.dds.config import DdsSettings, configuration
from narrowcast.deliver.transport.dds.loopback import kept_to
from narrowcast.deliver.transport.extra import engine
from narrowcast.errors import TransportError

TOPIC = "narrowcast"
FULL = -10  # DDS_RETCODE_TIMEOUT: the writer's history is full
_HEAD = Struct("<4sI")  # encapsulation, then the length of a sequence of octets
_PLAIN = [bytes((0, 1, 0, pad)) for pad in range(4)]
_ZEROS = [b"\0" * pad for pad in range(4)]

_domains: dict[int, tuple[str, Any, int]] = {}  # a domain is made once per process: configuration, entity, users
_lock = Lock()


class DdsNode:
    """A participant. Readers and writers are made per partition; what they share is one topic of bytes."""

    def __init__(self, settings: DdsSettings) -> None:
        self.settings = settings
        _open_domain(settings)
        core, domain, topic, util = (engine(f"cyclonedds.{name}") for name in ("core", "domain", "topic", "util"))
        layer = engine("cyclonedds._clayer")
        self._write, self._take = layer.ddspy_write, layer.ddspy_take
        self._core, self._pub, self._sub = core, engine("cyclonedds.pub"), engine("cyclonedds.sub")
        self._any = core.SampleState.Any | core.ViewState.Any | core.InstanceState.Any
        # A write never blocks the loop: it says "full", and the carrier waits its own way.
        self._qos = core.Qos(
            core.Policy.Reliability.Reliable(util.duration(milliseconds=0)), core.Policy.History.KeepAll
        )
        self._wait_ns = util.duration(milliseconds=200)
        self._wake = False
        try:
            with kept_to(settings.interface):
                self.participant = domain.DomainParticipant(settings.domain)
            self.topic = topic.Topic(self.participant, TOPIC, _bytes_type(), qos=self._qos)
            self.waitset = core.WaitSet(self.participant)
            self.guard = core.GuardCondition(self.participant)
            self.waitset.attach(self.guard)
        except core.DDSException as error:
            _close_domain(settings.domain)
            raise TransportError(
                f"multicast cannot start on {settings.interface}: {error.msg}",
                endpoint=settings.interface,
                limit=f"domain {settings.domain}",
            ) from None

    def writer(self, name: str) -> Any:
        publisher = self._pub.Publisher(self.participant, qos=self._partition(name))
        return self._pub.DataWriter(publisher, self.topic, qos=self._qos)

    def reader(self, name: str) -> Any:
        """A reader, attached to the waitset by its condition, which keeps it alive."""
        subscriber = self._sub.Subscriber(self.participant, qos=self._partition(name))
        reader = self._sub.DataReader(subscriber, self.topic, qos=self._qos)
        condition = self._core.ReadCondition(reader, self._any)
        self.waitset.attach(condition)
        return reader, condition

    def has_sender(self, reader: Any) -> bool:
        """Whether a reader has found somebody who sends. The wheel fails where one more is found while it counts."""
        try:
            return bool(reader.get_matched_publications())
        except IndexError:
            return True

    def drop(self, reader: Any, condition: Any) -> None:
        self.waitset.detach(condition)
        for entity in (condition, reader, reader.subscriber):
            entity.__del__()

    def write(self, writer: Any, data: bytes) -> bool:
        """Send; False if there is no room now."""
        pad = -len(data) % 4
        code = self._write(writer._ref, b"".join((_HEAD.pack(_PLAIN[pad], len(data)), data, _ZEROS[pad])))
        if code < 0 and code != FULL:
            raise TransportError(f"multicast cannot send (DDS code {code})", endpoint=self.settings.interface)
        return bool(code >= 0)

    def wait(self) -> None:
        """Until something may be there to take; called from the receiving thread only."""
        self.waitset.wait(self._wait_ns)

    def wake(self) -> None:
        """End the wait, and every one until `woken`."""
        self._wake = True
        self.guard.set(True)

    def woken(self) -> None:
        if self._wake:
            self._wake = False
            self.guard.set(False)

    def take(self, reader: Any, most: int) -> list[bytes]:
        """Samples that are there. One from a stranger on the same topic comes back as it is, to be counted."""
        found = self._take(reader._ref, self._any, most)
        if isinstance(found, int):
            return []  # the reader is being closed
        return [_bytes_of(data) for data, info in found if info.valid_data]

    def close(self) -> None:
        self.waitset.detach(self.guard)
        self.waitset.attached.clear()  # its finaliser would go to what is gone by then, and hang
        for entity in (self.waitset, self.guard, self.topic, self.participant):
            entity.__del__()
        _close_domain(self.settings.domain)

    def _partition(self, name: str) -> Any:
        return self._core.Qos(self._core.Policy.Partition([name]))


def _bytes_of(data: bytes) -> bytes:
    if len(data) < _HEAD.size:
        return data
    length = _HEAD.unpack_from(data)[1]
    return data[_HEAD.size : _HEAD.size + length]


def _bytes_type() -> Any:
    idl, types = engine("cyclonedds.idl"), engine("cyclonedds.idl.types")
    return idl.make_idl_struct("Bytes", "narrowcast.Bytes", {"data": types.sequence[types.uint8]})


def _open_domain(settings: DdsSettings) -> None:
    """Make the domain, or use the one this process has; its configuration cannot be another."""
    text = configuration(settings)
    with _lock:
        known = _domains.get(settings.domain)
        if known is None:
            with kept_to(settings.interface):
                entity = engine("cyclonedds.domain").Domain(settings.domain, text)
            _domains[settings.domain] = (text, entity, 1)
        elif known[0] != text:
            raise TransportError(
                f"DDS domain {settings.domain} is already configured differently in this process",
                endpoint=settings.interface,
                limit=f"domain {settings.domain}",
            )
        else:
            _domains[settings.domain] = (text, known[1], known[2] + 1)


def _close_domain(number: int) -> None:
    with _lock:
        text, entity, users = _domains[number]
        if users > 1:
            _domains[number] = (text, entity, users - 1)
        else:
            del _domains[number]
            entity.__del__()
