"""Random XPath profiles and XML documents over a small world, so that they meet often."""

from __future__ import annotations

from random import Random
from xml.sax.saxutils import escape, quoteattr

LABELS = "abcdef"
ATTRIBUTES = "xyz"
WORDS = ["", "1", "2", "3.5", " 2 ", "-1", "2.0", "red", "green", "a < b & c", "it's", "é"]


def document(rng: Random, size: int = 12, depth: int = 6) -> str:
    """A document of about `size` elements, with text, comments, CDATA and instructions between them."""
    left = [size]

    def text() -> str:
        kind = rng.random()
        word = escape(rng.choice(WORDS))
        if kind < 0.5:
            return word
        if kind < 0.6:
            return f"{word}<!-- note -->{escape(rng.choice(WORDS))}"
        if kind < 0.65:
            # Never empty: libxml2 makes an empty text node of that, which XPath 1.0 does not have.
            return f"{word}<![CDATA[{rng.choice(WORDS[1:])}]]>"
        if kind < 0.7:
            return f"<?note x?>{word}"
        return ""

    def element(level: int) -> str:
        left[0] -= 1
        name = rng.choice(LABELS)
        given = "".join(f" {a}={quoteattr(rng.choice(WORDS))}" for a in ATTRIBUTES if rng.random() < 0.4)
        inside = [text()]
        while level < depth and left[0] > 0 and rng.random() < 0.75:
            inside += [element(level + 1), text()]
        return f"<{name}{given}>{''.join(inside)}</{name}>"

    return element(1)


def xpath(rng: Random, steps: int = 4, plain: bool = False) -> str:
    """A path of the whole subset; `plain` leaves out `or` and `not`."""

    def name() -> str:
        return "*" if rng.random() < 0.2 else rng.choice(LABELS)

    def literal() -> str:
        if rng.random() < 0.5:
            return rng.choice(["1", "2", "3.5", "-1", "0", ".5", "2."])
        word = rng.choice(WORDS)
        return f'"{word}"' if "'" in word else f"'{word}'"

    def comparison() -> str:
        return f" {rng.choice(['=', '!=', '<', '<=', '>', '>='])} {literal()}" if rng.random() < 0.6 else ""

    def end() -> str:
        kind = rng.random()
        return f"@{rng.choice(ATTRIBUTES)}" if kind < 0.6 else "@*" if kind < 0.7 else "text()"

    def operand(level: int) -> str:
        kind = rng.random()
        if kind < 0.45:
            return end() + comparison()
        if kind < 0.55:
            return f".{comparison()}"
        if kind < 0.65:
            return f".//{end()}{comparison()}"
        start = rng.choice(["", "", ".//"])
        inner = start + path(rng.randint(1, 2), level + 1)
        if rng.random() < 0.3:
            inner += rng.choice(["/", "//"]) + end()
        return inner + comparison()

    def condition(level: int) -> str:
        kind = rng.random()
        if level > 2 or kind < 0.7 or (plain and kind > 0.85):
            return operand(level)
        if kind < 0.85:
            return f"{condition(level + 1)} and {condition(level + 1)}"
        if kind < 0.93:
            return f"({condition(level + 1)} or {condition(level + 1)})"
        return f"not({condition(level + 1)})"

    def path(n: int, level: int) -> str:
        parts = []
        for i in range(n):
            brackets = "".join(f"[{condition(level)}]" for _ in range(2) if rng.random() < 0.25 / level)
            parts.append((rng.choice(["/", "/", "//"]) if i else "") + name() + brackets)
        return "".join(parts)

    whole = rng.choice(["/", "//"]) + path(rng.randint(1, steps), 1)
    return whole + (rng.choice(["/", "//"]) + end() if rng.random() < 0.15 else "")
