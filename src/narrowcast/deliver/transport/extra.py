"""Engines are guests: each is imported on first use, and its absence is one line that says what to install."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from narrowcast.errors import TransportError

EXTRA = {"nats": "runtime", "zmq": "runtime", "cyclonedds": "dds", "prometheus_client": "console"}


@cache
def engine(module: str) -> Any:
    """Import part of an engine.

    >>> engine("zmq").__name__
    'zmq'
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ImportError as error:
        extra = EXTRA[package]
        raise TransportError(
            f"{package} is not installed: pip install 'narrowcast[{extra}]'", endpoint=package
        ) from error
