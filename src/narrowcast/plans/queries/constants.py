"""What answering costs: the four constants of the model, and how they follow from prices."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real

from narrowcast.errors import InputError

# The base of the paper's study (figure 8), in dollars.
KM, KT, KU = 365e-5, 3.25e-5, 0.16e-5
SECONDS_PER_YEAR = 31_536_000
SECONDS_PER_MONTH = 2_592_000


@dataclass(frozen=True, slots=True)
class Constants:
    """`Cost = K_A·work(M) + K_M·|M| + K_T·size(M) + K_U·U` (Crespo et al., §4).

    `km` is the price of one merged query, `kt` of one object sent, `ku` of one object that a client
    receives and throws away. The server's work on a merged query is `per_query + per_object · size`
    at `ka` each (§5.2: selections with clustering indices); `folded` moves it into K_M and K_T.
    The defaults are the base of the paper's study (figure 8).

    >>> Constants(ka=1.0, km=2.0, kt=3.0, ku=4.0).folded
    (3.0, 3.01, 4.0)
    """

    km: float = KM
    kt: float = KT
    ku: float = KU
    ka: float = 0.0
    per_query: float = 1.0
    per_object: float = 0.01

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
                raise InputError(
                    f"{field.name} must be a finite number, zero or more, got {value!r}", name=field.name, got=value
                )

    @property
    def folded(self) -> tuple[float, float, float]:
        """(K_M, K_T, K_U) with the server's work inside: what the algorithms compare."""
        return self.km + self.ka * self.per_query, self.kt + self.ka * self.per_object, self.ku


@dataclass(frozen=True, slots=True)
class AnswerPrices:
    """What the constants are made of; the defaults are the paper's worked example (§7.2), in dollars.

    A server of 100,000 amortised over two years with 50,000 a year to run it answers an empty query in a
    second and adds a hundredth per object. A line of 1.1 Mb/s costs 235 a month and its modem 1,165 over
    two years (48.50 a month); a connection takes 100 KB to set up and an object 1 KB. A client's batteries
    cost 5 and last 1,800 minutes; an object takes it a tenth of a second.
    """

    server_per_year: float = 50_000
    operation_per_year: float = 50_000
    server_seconds_per_query: float = 1.0
    server_seconds_per_object: float = 0.01
    modem_per_month: float = 48.50
    line_per_month: float = 235.0
    line_megabits_s: float = 1.1
    megabytes_per_query: float = 0.1
    megabytes_per_object: float = 0.001
    battery: float = 5.0
    battery_minutes: float = 1_800
    client_seconds_per_object: float = 0.1

    @property
    def server_second(self) -> float:
        """C_S."""
        return (self.server_per_year + self.operation_per_year) / SECONDS_PER_YEAR

    @property
    def network_megabyte(self) -> float:
        """C_N."""
        megabytes_per_month = self.line_megabits_s / 8 * SECONDS_PER_MONTH
        return (self.modem_per_month + self.line_per_month) / megabytes_per_month

    @property
    def client_second(self) -> float:
        """C_C."""
        return self.battery / (self.battery_minutes * 60)


def worked_constants(prices: AnswerPrices | None = None) -> Constants:
    """The model's constants from prices: the server keeps K_A, `folded` gives the paper's three.

    >>> km, kt, ku = worked_constants().folded
    >>> f"{km:.6f} {kt:.6f} {ku:.8f}"
    '0.003251 0.000033 0.00000463'

    The paper prints K_T as 0.000032, its digits cut off; rounded it is 0.000033.
    """
    p = AnswerPrices() if prices is None else prices
    return Constants(
        km=p.network_megabyte * p.megabytes_per_query,
        kt=p.network_megabyte * p.megabytes_per_object,
        ku=p.client_second * p.client_seconds_per_object,
        ka=p.server_second,
        per_query=p.server_seconds_per_query,
        per_object=p.server_seconds_per_object,
    )
