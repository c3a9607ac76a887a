"""Who subscribes on a running system, for whoever keeps statistics of it: asked in plain blocking calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import backbone, url_of
from narrowcast.deliver.transport import Value
from narrowcast.deliver.transport.retry import PATIENCE_S
from narrowcast.errors import TransportError

TIMEOUT = 30.0


def registered(
    url: str | Path | None = None, *, system: str = "nc", patience: float = PATIENCE_S
) -> Callable[[], list[tuple[str, str]]]:
    """A function that lists the subscriptions of now, as (name, profile).

    What is not known cannot be left out: if the registry does not answer, it raises TransportError.
    """
    place = url_of(url)

    def ask() -> list[tuple[str, str]]:
        try:
            return asyncio.run(asyncio.wait_for(_listed(place, system, patience), TIMEOUT))
        except TimeoutError:
            raise TransportError(
                f"the registry did not list its subscriptions within {TIMEOUT:g} s", endpoint=system
            ) from None

    return ask


async def _listed(url: str, system: str, patience: float) -> list[tuple[str, str]]:
    bone = await backbone(url, name="subscriptions", system=system, patience=patience)
    try:
        values = await bone.registry.listed(records.SUBSCRIPTION)
        return sorted(found for value in values if (found := _subscription(value)) is not None)
    finally:
        await bone.close()


def _subscription(value: Value) -> tuple[str, str] | None:
    """Its name and profile; a record that is none is nobody's, as it is to the coordinator."""
    try:
        return records.name_of(value.key), records.read(value.key, value.data or b"")["profile"]
    except ValueError:
        return None
