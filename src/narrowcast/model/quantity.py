"""Numbers as people read them: one way, on pages, in tables and in sentences."""

from __future__ import annotations

import math


def quantity(value: float, *, signed: bool = False) -> str:
    """Three digits that matter, thousands apart; with a sign also where it is a plus, for what changes.

    >>> quantity(12345.6), quantity(0.0), quantity(3.14159), quantity(0.000123), quantity(11713187)
    ('12,346', '0', '3.14', '0.000123', '11,713,187')
    >>> quantity(16920.4, signed=True), quantity(-0.5, signed=True), quantity(0, signed=True)
    ('+16,920', '-0.500', '0')
    """
    if not math.isfinite(value):
        return "–" if math.isnan(value) else f"{'−' if value < 0 else ''}∞"
    if signed and value > 0:
        return f"+{quantity(value)}"
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if abs(value) >= 1e15 or abs(value) < 1e-6:
        return f"{value:.2e}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}"
