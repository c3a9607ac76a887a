"""Rates as people pay for them: megabits a second on the wire, and processor cores that filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from narrowcast.reports.parts import Section, table
from narrowcast.reports.text import THIN, number, percent

MESSAGE_BYTES, FILTER_US = 100.0, 4.0  # where nobody says: a quote, and its two tests at a receiver


@dataclass(frozen=True, slots=True)
class Amount:
    """Messages a second by each way; `filtered` ones cost a subscriber's time too."""

    what: str
    rates: Mapping[str, float]
    filtered: bool = False


def amounts_section(amounts: Sequence[Amount], message_bytes: float, filter_us: float) -> Section:
    """A row for each amount and unit, a column for each way."""
    ways = list(amounts[0].rates)
    rows = []
    for each in amounts:
        rows.append((each.what, *(bits_s(rate * message_bytes) for rate in each.rates.values())))
        if each.filtered:
            rows.append(
                (f"{each.what}: CPU to filter", *(cores(rate * filter_us / 1e6) for rate in each.rates.values()))
            )
    lead = (
        f"Rates are messages a second. At {number(message_bytes)} bytes a message and {number(filter_us)} µs of a core "
        "to filter one at its subscriber; give your own with narrowcast report --message-bytes and --filter-us."
    )
    return Section("amounts", "In Mbit/s and CPU", table(("what", *ways), rows, numbers=ways, stack=True), lead)


def bits_s(bytes_s: float) -> str:
    """A rate on the wire in bits, with the unit it is read best in.

    >>> [bits_s(rate).replace(THIN, " ") for rate in (1_000_000, 50, 0, 4e9)]
    ['8 Mbit/s', '400 bit/s', '0 bit/s', '32 Gbit/s']
    """
    bits = 8 * bytes_s
    unit, size = next(((u, s) for u, s in (("G", 1e9), ("M", 1e6), ("k", 1e3)) if bits >= s), ("", 1.0))
    return f"{number(bits / size)}{THIN}{unit}bit/s"


def cores(seconds: float) -> str:
    """Seconds of CPU in a second.

    >>> [cores(used).replace(THIN, " ") for used in (2.5, 0.031, 0)]
    ['2.50 cores', '3.1 % of a core', '0 % of a core']
    """
    return f"{number(seconds)} cores" if seconds >= 1 else f"{percent(seconds)} of a core"


def mbit_s(bytes_s: float) -> float:
    """Megabits a second, for columns that all have that unit."""
    return 8 * bytes_s / 1e6
