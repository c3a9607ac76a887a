"""The Python reference: the public names of `narrowcast`, each with its signature and docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import narrowcast as nc

OPENING = """# Python

The public names: `import narrowcast as nc`. Arrays are NumPy's, indices begin at 0. Tables are `pyarrow.Table`s.
"""
ROOMS = ("channels", "filters", "queries", "semantic", "workloads", "testing", "errors")
SECTIONS = ("Parameters", "Returns", "Raises")


def page() -> str:
    """All public names as one page of Markdown."""
    import narrowcast.testing  # noqa: F401 - so that nc.testing is there

    names = [name for name in nc.__all__ if name not in ROOMS and not name.startswith("_")]
    verbs = [name for name in names if not isinstance(getattr(nc, name), type)]
    text = [OPENING, "## Verbs\n", *_all(nc, "nc", verbs)]
    text += ["## Nouns\n", *_all(nc, "nc", [name for name in names if name not in verbs])]
    for room in ROOMS:
        module = getattr(nc, room)
        text += [f"## nc.{room}\n", _first_line(module), ""]
        text += _all(module, f"nc.{room}", _public(module))
    return "\n".join(text) + "\n"


def _public(module: Any) -> list[str]:
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]


def _all(module: Any, prefix: str, names: list[str]) -> Iterator[str]:
    for name in names:
        value = getattr(module, name)
        if isinstance(value, dict):
            yield f"### {prefix}.{name}\n\n" + ", ".join(f"`{key}`" for key in value) + "\n"
        elif callable(value):
            yield f"### {prefix}.{name}\n"
            yield _signature(name, value)
            yield markdown(inspect.getdoc(value) or "")
            if isinstance(value, type):
                yield from _methods(value)


def _methods(cls: type) -> Iterator[str]:
    for name, value in vars(cls).items():
        found = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if name.startswith("_") or not (inspect.isfunction(found) or isinstance(value, property | cached_property)):
            continue
        doc = inspect.getdoc(value) or ""
        if not doc:
            continue
        shown = name if isinstance(value, property | cached_property) else f"{name}{_parameters(found)}"
        yield f"**`{shown}`**\n\n{markdown(doc)}\n"


def _signature(name: str, value: Any) -> str:
    if isinstance(value, type) and issubclass(value, BaseException):
        return ""
    shown = f"{name}{_parameters(value)}"
    if len(shown) > 100:
        shown = shown.replace("(", "(\n    ", 1).replace(", ", ",\n    ")
    return f"```python\n{shown}\n```\n"


def _parameters(value: Any) -> str:
    """Names and defaults; the types are told in words below."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(…)"
    bare = [each.replace(annotation=inspect.Parameter.empty) for each in signature.parameters.values()]
    bare = [each for each in bare if each.name not in ("self", "cls")]
    shown = str(inspect.Signature(bare))
    return re.sub(r"<[^>]*>", "…", shown)


def _first_line(module: Any) -> str:
    return (module.__doc__ or "").strip().partition("\n")[0].partition(": ")[2]


def markdown(doc: str) -> str:
    """A docstring as Markdown: sections as lists, examples as code.

    >>> print(markdown("Add.\\n\\nParameters\\n----------\\na, b : numbers\\n    of any kind\\n\\n>>> 1 + 1\\n2"))
    Add.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - `a, b`: numbers of any kind
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    blocks = re.split(r"\n\s*\n", doc.strip())
    return "\n\n".join(_block(each) for each in _joined(blocks)) + "\n"


def _joined(blocks: list[str]) -> list[str]:
    """Examples that follow each other are one block."""
    found: list[str] = []
    for block in blocks:
        if found and block.startswith(">>>") and found[-1].startswith(">>>"):
            found[-1] += f"\n{block}"
        else:
            found.append(block)
    return found


def _block(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    lines = text.splitlines()
    if lines[0] in SECTIONS and len(lines) > 1 and set(lines[1].strip()) == {"-"}:
        return f"**{lines[0]}**\n\n" + "\n".join(_items(lines[2:]))
    return text


def _items(lines: list[str]) -> Iterator[str]:
    item = ""
    for line in [*lines, None]:
        if line is not None and line.startswith(" ") and item:
            item += f" {line.strip()}"
            continue
        if item:
            name, colon, told = item.partition(" : ")
            yield f"- `{name}`: {told}" if colon else f"- {item}"
        item = (line or "").strip()
