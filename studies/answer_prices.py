"""Where the constants of query merging come from: the prices of the paper's worked example."""

from __future__ import annotations

from dataclasses import dataclass

from narrowcast.plans.queries.constants import Constants

SECONDS_PER_YEAR = 31_536_000
SECONDS_PER_MONTH = 2_592_000


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
