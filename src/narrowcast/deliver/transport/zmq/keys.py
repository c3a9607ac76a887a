"""CURVE keys of the overlay: made on first use, secret ones readable by their owner only.

A folder holds `<node>.secret` for the nodes of this host and `<node>.public` for everybody who may
speak to a broker here: that is the allow-list. To admit a node of another host, copy its public file.
"""

from __future__ import annotations

from pathlib import Path

from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.private_file import write_private

CLIENTS = "clients"  # the key that edges share: whoever has it may attach, but not pose as a broker


def key_pair(folder: Path, node: str) -> tuple[str, str]:
    """The public and secret key of a node, made if they are not there."""
    secret, public = folder / f"{_safe(node)}.secret", folder / f"{_safe(node)}.public"
    if not secret.exists():
        made_public, made_secret = engine("zmq").curve_keypair()
        write_private(secret, made_secret.decode() + "\n")
        write_private(public, made_public.decode() + "\n")
    return public.read_text().strip(), secret.read_text().strip()


def public_key(folder: Path, node: str) -> str:
    """The public key of a node; made, with its secret, if there is none."""
    path = folder / f"{_safe(node)}.public"
    return path.read_text().strip() if path.exists() else key_pair(folder, node)[0]


def allowed(folder: Path) -> frozenset[str]:
    """The public keys of everybody who may speak to a broker of this host."""
    return frozenset(path.read_text().strip() for path in sorted(folder.glob("*.public")))


def _safe(node: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else f"%{ord(c):x}" for c in node)
