"""Names that a path looks for in no namespace while documents have them in one: such a path finds nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from narrowcast.errors import InputError
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.syntax import XML, Finds, terms
from narrowcast.profiles.xpath.document import parse_document
from narrowcast.profiles.xpath.pattern import elements, name_part
from narrowcast.profiles.xpath.xpath import xpath_of

#: So many documents are looked at.
MOST = 200


def missed_namespaces(profiles: Iterable[Profile], messages: Any) -> list[str]:
    """A line for each namespace whose names profiles ask for without one, from a sample of the documents.

    Parameters
    ----------
    profiles : of any notation; only XPath is looked at
    messages : an Arrow table with the documents in column `xml`

    Returns
    -------
    lines for people; none where nothing is missed

    >>> import pyarrow as pa
    >>> from narrowcast.profiles import Profile
    >>> documents = pa.table({"xml": ["<trade xmlns='urn:f'/>"]})
    >>> missed_namespaces([Profile.parse("//trade")], documents)[0]
    "XPath profiles ask for trade in no namespace, documents have it in 'urn:f': append xmlns='urn:f' to the path"
    >>> missed_namespaces([Profile.parse("//trade xmlns='urn:f'")], documents)
    []
    """
    found = {t.path for each in profiles for t in terms(each.expression) if isinstance(t, Finds) and t.attribute == XML}
    paths = [xpath_of(text) for text in sorted(found)]
    if not paths or XML not in messages.column_names:
        return []
    asked = {e.label for path in paths for e in elements(path.pattern) if e.label and "}" not in e.label}
    return _lines(asked, _labels(messages[XML].slice(0, MOST).to_pylist())) if asked else []


def _labels(documents: Sequence[str | bytes | None]) -> Counter[str]:
    """In how many documents each name occurs; those that are refused elsewhere are left out."""
    found: Counter[str] = Counter()
    for document in documents:
        try:
            found.update(set(parse_document(document).labels) if document is not None else ())
        except InputError:
            continue
    return found


def _lines(asked: set[str], labels: Counter[str]) -> list[str]:
    """Names that no document has as they are asked for, by the namespace that most documents have them in."""
    missed: dict[str, list[str]] = {}
    for name in sorted(asked - labels.keys()):
        spaces: Counter[str] = Counter()
        for label, count in labels.items():
            if name_part(label, "local-name") == name:
                spaces[name_part(label, "namespace-uri")] += count
        if spaces:
            missed.setdefault(spaces.most_common(1)[0][0], []).append(name)
    lines = []
    for space, names in missed.items():
        some = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        it = "it" if len(names) == 1 else "them"
        lines.append(f"XPath profiles ask for {some} in no namespace, documents have {it} in {space!r}: "
                     f"append xmlns={space!r} to the path")  # fmt: skip
    return lines
