"""Moments: from ISO text, and as the whole microseconds since 1970 in UTC that comparisons work on."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = datetime(1970, 1, 1, tzinfo=UTC)
_MOMENT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?(?:\.(\d{1,6}))?)? ?(Z|UTC|[+-]\d\d:?\d\d)?", re.IGNORECASE
)


def microseconds(moment: datetime) -> int:
    """Whole microseconds since 1970 in UTC; a naive moment is UTC.

    >>> microseconds(datetime(1970, 1, 2))
    86400000000
    """
    since = moment - (_EPOCH if moment.tzinfo is None else _EPOCH_UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def read_moment(text: str) -> datetime | None:
    """A moment in UTC from ISO text, which is UTC unless an offset follows; None if it is none.

    >>> read_moment("2024-02-29T12:00+01:00"), read_moment("2024-02-30")
    (datetime.datetime(2024, 2, 29, 11, 0, tzinfo=datetime.timezone.utc), None)
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    day, minutes, seconds, fraction, zone = found.groups()
    zone = "+00:00" if zone is None or zone.upper() in ("Z", "UTC") else zone
    whole = f"{day} {minutes or '00:00'}{seconds or ':00'}.{(fraction or '').ljust(6, '0')}{zone}"
    try:
        return datetime.fromisoformat(whole).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
