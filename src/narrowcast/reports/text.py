"""Numbers as people read them, and text that a page can hold without taking it for markup."""

from __future__ import annotations

import html
import math
import re

from narrowcast.model.quantity import quantity as number

__all__ = ["THIN", "e", "number", "percent", "plural", "seen", "short", "term_words", "times"]

# Names of cost terms that say little by themselves.
_TERMS = {
    "c1": "c1: alpha × messages of joined groups",
    "c2": "c2: beta × messages of taken sessions",
    "useful": "useful: messages that somebody wants",
    "excess": "excess: c1 + c2 beyond what is wanted",
    "flooding": "flooding: its excess",
    "relative": "relative: excess / flooding",
    "perfect": "perfect multicast",
    "tree": "tree: from each rendezvous down",
    "full": "full: from the source, by the rendezvous",
    "server": "server: running the queries",
    "channel": "channel: one for each answer",
    "transfer": "transfer: what is sent",
    "client": "client: rows that are not its own",
}
THIN = "\u202f"  # narrow no-break space, between a number and its sign or unit


# What is not seen, or turns the text after it round: a name with these could make a page say what is not so.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")


def e(value: object) -> str:
    """Any text, safe inside an element or a quoted attribute; characters that hide or turn text are spelt out.

    >>> e('<script>alert("x")</script>')
    '&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;'
    >>> e("a\u202eb")
    'a[U+202E]b'
    """
    return html.escape(seen(value), quote=True)


def seen(value: object) -> str:
    """Any text with what hides or turns it spelt out, for a script that shows it as text."""
    return _UNSEEN.sub(lambda found: f"[U+{ord(found.group()):04X}]", str(value))


def percent(share: float) -> str:
    """A share in percent with one digit; what is small but there is not called nothing.

    >>> percent(0.3712).replace(THIN, " "), percent(0.0).replace(THIN, " "), percent(0.00001).replace(THIN, " ")
    ('37.1 %', '0 %', '< 0.1 %')
    """
    if not math.isfinite(share):
        return "–"
    if share == 0:
        return f"0{THIN}%"
    if 0 < share < 0.0005:
        return f"<{THIN}0.1{THIN}%"
    shown = f"{100 * share:,.1f}" if abs(share) < 10 else f"{100 * share:,.0f}"
    return f"{shown.removesuffix('.0') if abs(share) >= 1 else shown}{THIN}%"


def term_words(name: str) -> str:
    """A cost term as a reader needs it: its name, and what it counts where the name does not say.

    >>> term_words("excess"), term_words("session_filtering")
    ('excess: c1 + c2 beyond what is wanted', 'session filtering')
    """
    return _TERMS.get(name, name.replace("_", " "))


def times(value: float) -> str:
    """A multiple: 9.8×."""
    return f"{value:,.1f}".removesuffix(".0") + "×"


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 group`, `2 groups`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def short(name: str, most: int = 48) -> str:
    """A long name cut in the middle, for where there is little room."""
    return name if len(name) <= most else f"{name[: most - 13]}…{name[-12:]}"
