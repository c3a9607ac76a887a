"""Frames sealed: what a process on the network can neither read nor make, nor send again, without the session's key.

    magic version kind system epoch channel plan | nonce | AES-GCM of the rest | tag

What stands in front is readable, for brokers to pass frames on by, and authenticated with the rest. Every session of
every epoch has a key of its own. A nonce is six random bytes of the process that sealed, and how many frames it has
sealed: so none is used twice, and a receiver knows a frame that it has had.

What a filter has thinned out for one node is true for that node only: there its messages are all. Such a frame is
sealed for it by name (`ALONE`), and nobody else takes it; and so is what an edge asks of its broker.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from narrowcast.deliver.wire.frame import (
    COLUMNS,
    EVERY,
    MAGIC,
    PREFIX,
    SEAL_BYTES,
    VERSION,
    Attach,
    Frame,
    Malformed,
    Pulse,
    encode,
)
from narrowcast.errors import TransportError

SEALED, ALONE = 0x80, 0x40  # in the kind of a frame
LARGE = 16 << 10
WINDOW = 1024  # frames of one sender and session that may overtake each other
KEY_BYTES = 16
NONCE = 12
_PREFIX = 6  # bytes of a nonce that name who sealed
_START = MAGIC + bytes((VERSION,))
REFUSED = ("foreign", "forged", "replayed", "no key")


def session_key(root: bytes, epoch: int, channel: int, plan: int) -> bytes:
    """The key of a session, which says nothing about that of another.

    >>> len(session_key(b"x" * 32, 1, 7, 0))
    16
    """
    which = b"%d %d %d" % (epoch, channel, plan)
    return blake2b(which, key=root, digest_size=KEY_BYTES, person=b"narrowcast-seal").digest()


class Seal:
    """What one process seals and opens frames with; without keys and unless told so, frames go as they are.

    `system` is the id of the system; frames of any other are refused, and so are those of a plan that is not the one
    known here under their epoch's number.
    """

    def __init__(self, system: int = 0, *, sealed: bool = False, name: str = "") -> None:
        self.system, self.sealed, self._name = system, sealed, name.encode()
        self._aead = _engine() if sealed else None
        self._plans: dict[int, int] = {}
        self._roots: dict[int, bytes] = {}
        self._keys: dict[tuple[int, int], tuple[int, Any]] = {}  # by epoch and channel: for which plan, and with what
        self._seen: dict[
            tuple[int, int, bytes], tuple[int, int]
        ] = {}  # by session and sender: the last, and which before
        self._me = secrets.token_bytes(_PREFIX)
        self._count = 0

    # What is known of each epoch.

    def plan_of(self, epoch: int) -> int | None:
        """The checksum of the plan of an epoch."""
        return self._plans.get(epoch)

    def know(self, epoch: int, plan: int) -> None:
        """Frames of this epoch are made by the plan with this checksum."""
        self._plans[epoch] = plan

    def forget(self, epoch: int) -> None:
        """Nothing of this epoch is expected any more."""
        self._plans.pop(epoch, None)
        self._roots.pop(epoch, None)
        self._keys = {key: found for key, found in self._keys.items() if key[0] != epoch}
        self._seen = {key: found for key, found in self._seen.items() if key[0] != epoch}

    def add_root(self, epoch: int, root: bytes) -> None:
        """What the keys of all sessions of an epoch come from, for those who send and pass on."""
        if self._roots.get(epoch) != root:
            self._roots[epoch] = root
            self._keys = {key: found for key, found in self._keys.items() if key[0] != epoch}

    def add_keys(self, epoch: int, plan: int, keys: Mapping[int, bytes]) -> None:
        """The keys of some sessions, for those who take them."""
        if self._aead is not None:
            self._keys |= {(epoch, channel): (plan, self._aead(key)) for channel, key in keys.items()}

    def is_ready(self, epoch: int, channel: int = EVERY) -> bool:
        """Whether frames of a session can be sealed and opened."""
        return not self.sealed or self._key(epoch, channel) is not None

    def _key(self, epoch: int, channel: int) -> Any:
        plan = self._plans.get(epoch)
        found = self._keys.get((epoch, channel))
        if found is not None and found[0] == plan:
            return found[1]
        root = self._roots.get(epoch)
        if root is None or plan is None or self._aead is None:
            return None
        aead = self._aead(session_key(root, epoch, channel, plan))
        self._keys[epoch, channel] = (plan, aead)
        return aead

    # Out and in.

    def pack(self, what: Frame | Attach | Pulse, to: str = "") -> bytes:
        """The bytes to send, for everybody or for one node. TransportError: there is no key for it."""
        epoch = what.epoch
        data = encode(what, self.system, self._plans.get(epoch, 0))
        if not self.sealed:
            return data
        aead = self._key(epoch, EVERY if isinstance(what, Pulse) else what.channel)
        if aead is None:
            raise TransportError(f"there is no key for frames of epoch {epoch}")
        self._count += 1
        nonce = self._me + self._count.to_bytes(NONCE - _PREFIX, "big")
        kind = data[3] | SEALED | (ALONE if to else 0)
        head = b"%b%c%b" % (_START, kind, data[4 : PREFIX.size])
        rest = memoryview(data)[PREFIX.size :]
        if len(data) < LARGE or not _is_large(data):
            return b"".join((head, nonce, aead.encrypt(nonce, rest, head + to.encode())))
        found: Any = bytearray(len(data) + SEAL_BYTES)
        found[: PREFIX.size + NONCE] = head + nonce
        aead.encrypt_into(nonce, rest, head + to.encode(), memoryview(found)[PREFIX.size + NONCE :])
        return found  # type: ignore[no-any-return]

    def open(self, data: bytes) -> bytes | Malformed:
        """A frame as `encode` made it, or why it is refused: foreign, forged, replayed, no key. Never raises."""
        if len(data) < PREFIX.size or data[:3] != _START:
            return data  # no frame, as `decode` will say
        _, _, kind, system, epoch, channel, plan = PREFIX.unpack_from(data)
        if system != self.system:
            return Malformed("foreign")
        known = self._plans.get(epoch)
        if known is not None and plan != known:
            return Malformed("foreign")
        if not self.sealed:
            return data
        aead = self._key(epoch, channel)
        if aead is None:
            return Malformed("no key")
        if not kind & SEALED or len(data) < PREFIX.size + SEAL_BYTES:
            return Malformed("forged")
        nonce = bytes(data[PREFIX.size : PREFIX.size + NONCE])
        head = bytes(data[: PREFIX.size])
        sealed, with_it = memoryview(data)[PREFIX.size + NONCE :], head + self._name if kind & ALONE else head
        plain = b"%b%c%b" % (_START, kind & ~(SEALED | ALONE), head[4:])
        try:
            if len(data) < LARGE or not _is_large(data):
                plain += aead.decrypt(nonce, sealed, with_it)
            else:
                found: Any = bytearray(len(data) - SEAL_BYTES)
                found[: PREFIX.size] = plain
                aead.decrypt_into(nonce, sealed, with_it, memoryview(found)[PREFIX.size :])
                plain = found
        except Exception:  # the library's InvalidTag, which only those who have it can name
            return Malformed("forged")
        return plain if self._is_new(epoch, channel, nonce) else Malformed("replayed")

    def passes(self, what: Frame | Attach | Pulse) -> bytes | None:
        """The bytes of a frame that may go on as it came; None for one that must be packed, for each who gets it.

        That is one which was opened and changed, or which somebody before us thinned out for us.
        """
        sent: bytes | None = getattr(what.messages, "sent", None) if isinstance(what, Frame) else None
        return None if sent is None or sent[3] & ALONE else sent

    def _is_new(self, epoch: int, channel: int, nonce: bytes) -> bool:
        """Whether this is the first time; one that is older than the window may not be, and counts as not."""
        key = (epoch, channel, nonce[:_PREFIX])
        number = int.from_bytes(nonce[_PREFIX:], "big")
        last, before = self._seen.get(key, (0, 0))
        if number > last:
            ahead = number - last
            before = ((before << ahead) | (1 << (ahead - 1))) & ((1 << WINDOW) - 1) if ahead < WINDOW else 0
            self._seen[key] = (number, before)
            return True
        bit = 1 << (last - number - 1) if 0 < last - number <= WINDOW else 0
        if not bit or before & bit:
            return False
        self._seen[key] = (last, before | bit)
        return True


def _is_large(data: bytes) -> bool:
    """Whether a frame is one of columns, of which nothing is cut out as bytes, and a copy of it worth avoiding."""
    return len(data) >= LARGE and data[3] & ~(SEALED | ALONE) == COLUMNS


def _engine() -> Any:
    """AES-GCM, or one line that says how to install it."""
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ImportError:
        raise TransportError(
            "cryptography is not installed: pip install 'narrowcast[runtime]', or seal = false under [security]",
            endpoint="cryptography",
        ) from None
    return AESGCM
