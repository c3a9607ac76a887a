"""What answering costs: the four constants of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real

from narrowcast.errors import InputError

# The base of the paper's study (figure 8), in dollars.
KM, KT, KU = 365e-5, 3.25e-5, 0.16e-5


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
