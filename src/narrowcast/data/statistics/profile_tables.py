"""Tables with one row per profile, made at the driver, which has the profiles anyway. Function name = table name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from narrowcast.data.statistics.partials import BYTE, WEIGHT, Ints

if TYPE_CHECKING:
    import pyarrow as pa

    from narrowcast.data.statistics.tables import Span


def profile_rates(profiles: Ints, over: Span) -> pa.Table:
    """How fast what each profile matches flows: profile, messages, bytes, rate, rate_bytes_s."""
    import pyarrow as pa

    sums = over.of_profiles(profiles)
    messages, size = sums[:, 0].copy(), sums[:, 1] / float(BYTE)
    rates = {"rate": messages / over.per, "rate_bytes_s": size / over.per}
    return pa.table({"profile": profiles, "messages": messages, "bytes": size, **rates})


def selectivity(profiles: Ints, over: Span) -> pa.Table:
    """The decayed share of the messages in the window that each profile matches: profile, weight, selectivity."""
    import pyarrow as pa

    weight = over.of_profiles(profiles)[:, 2]
    shares = {"weight": weight / float(WEIGHT), "selectivity": weight / float(max(over.weight, 1))}
    return pa.table({"profile": profiles, **shares})
