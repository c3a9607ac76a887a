"""Who may speak to a broker: ZAP on ZeroMQ, by the list of public keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.zmq.keys import allowed


class Guard:
    """Who is not on the list is turned away, and told so.

    The list is read for every newcomer, so that nodes can be admitted while the broker runs.
    """

    def __init__(self, context: Any, keys: Path) -> None:
        self._context, self._keys = context, keys
        self._auth: Any = None

    def start(self) -> None:
        thread = engine("zmq.auth.thread")
        self._auth = thread.ThreadAuthenticator(self._context)
        self._auth.start()
        self._auth.configure_curve_callback(domain="narrowcast", credentials_provider=self)

    def callback(self, domain: str, key: bytes) -> bool:
        """Called by the authenticator's thread."""
        try:
            return key.decode() in allowed(self._keys)
        except (OSError, UnicodeDecodeError):  # an exception would end the guard's thread: then nobody gets in
            return False

    def stop(self) -> None:
        if self._auth is not None:
            self._auth.stop()
            self._auth = None
