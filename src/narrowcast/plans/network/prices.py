"""What things cost in a network, in units that people have bills for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isfinite

from narrowcast.errors import InputError

#: Each price with its unit, as it is printed.
UNITS = {
    "price_cpu": "per CPU hour at subscribers",
    "price_send": "per million copies sent",
    "price_filter": "per filter and hour",
    "price_group": "per multicast group and hour",
}


@dataclass(frozen=True, slots=True)
class NetworkPrices:
    """Prices beside those of links, which stand in the topology per GB. A plan's cost is per hour.

    >>> NetworkPrices(price_cpu=0.1).told()
    'price_cpu 0.1 per CPU hour at subscribers, price_send 0.0002 per million copies sent, price_filter 0.02 per \
filter and hour, price_group 0.0001 per multicast group and hour'
    """

    price_cpu: float = 0.05
    price_send: float = 2e-4
    price_filter: float = 0.02
    price_group: float = 1e-4

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
                raise InputError(f"{name} must be a number, zero or more, got {value!r}", name=name, got=value)

    def told(self) -> str:
        """The prices in words, each with its unit."""
        return ", ".join(f"{name} {value:g} {UNITS[name]}" for name, value in asdict(self).items())


HOUR, GB, MILLION = 3600.0, 1e9, 1e6
