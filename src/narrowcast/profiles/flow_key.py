"""The flow of a message: the text of its key attributes, joined so that no two keys look alike.

As the pipeline names flows. A value whose text differs there (an unusual type) makes a flow that no
plan knows, whose messages go to everyone who may want them: wider, never narrower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NULL = "\\N"


def flow_name(message: Mapping[str, Any], key: Sequence[str]) -> str:
    """The name of a message's flow.

    >>> flow_name({"symbol": "IBM", "venue": "N|Y"}, ["symbol", "venue"])
    'IBM|N\\\\|Y'
    """
    if len(key) == 1:
        value = message.get(key[0])
        return value if type(value) is str else _text(value)
    texts = (_text(message.get(name)).replace("\\", "\\\\").replace("|", "\\|") for name in key)
    return "|".join(NULL if message.get(name) is None else text for name, text in zip(key, texts, strict=True))


def _text(value: Any) -> str:
    if value is None:
        return NULL
    return str(value).lower() if isinstance(value, bool) else str(value)
