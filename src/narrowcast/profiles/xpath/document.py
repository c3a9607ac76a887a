"""An XML document as flat lists, read by a parser that refuses what a stranger's document need not have.

Document types and entities of any kind are refused (no expansion bombs, no files or addresses read), and so
are documents that are too large, too deep or have too many elements.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NoReturn
from xml.parsers import expat

from narrowcast.errors import InputError

NAMESPACE_END = "}"


@dataclass(frozen=True, slots=True)
class XmlLimits:
    """What a document may have at most."""

    size_bytes: int = 1_000_000
    depth: int = 100
    elements: int = 50_000
    attributes: int = 200
    name_chars: int = 1_000


DEFAULT_LIMITS = XmlLimits()


@dataclass
class Document:
    """Elements in document order. Element e has `depth[e]` ancestors; its descendants follow it directly.

    A name in a namespace reads `address}name`. `texts[i]` is one text node, a child of element
    `owner[i]`; the texts inside element e are `texts[first_text[e]:end_text[e]]`.
    """

    labels: list[str] = field(default_factory=list)
    depth: list[int] = field(default_factory=list)
    attributes: list[dict[str, str]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    owner: list[int] = field(default_factory=list)
    first_text: list[int] = field(default_factory=list)
    end_text: list[int] = field(default_factory=list)

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of its elements."""
        return frozenset(self.labels)

    def value(self, e: int) -> str:
        """All text inside an element, in order: XPath's string-value."""
        return "".join(self.texts[self.first_text[e] : self.end_text[e]])

    def own_texts(self, e: int) -> list[str]:
        """The text nodes that are children of an element."""
        inside = range(self.first_text[e], self.end_text[e])
        return [self.texts[i] for i in inside if self.owner[i] == e]


def parse_document(xml: str | bytes, limits: XmlLimits = DEFAULT_LIMITS) -> Document:
    """Read a document, or refuse it with one line that says why and where. O(size).

    >>> parse_document("<order id='7'><sym>IBM</sym></order>").labels
    ['order', 'sym']
    >>> parse_document("<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>")
    Traceback (most recent call last):
    narrowcast.errors.InputError: document refused at line 1: it has a document type
    """
    data = xml.encode("utf-8", "surrogatepass") if isinstance(xml, str) else xml
    if len(data) > limits.size_bytes:
        raise InputError(f"document refused: at most {limits.size_bytes} bytes, got {len(data)}", name="document")
    parser = expat.ParserCreate("utf-8" if isinstance(xml, str) else None, NAMESPACE_END)
    parser.buffer_text = True
    document = Document()
    _listen(parser, document, limits)
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise InputError(f"document refused at line {error.lineno}: {expat.ErrorString(error.code)}") from None
    except (ValueError, LookupError) as error:  # an encoding that Python does not have or that is no text encoding
        raise InputError(f"document refused: {error}", name="document") from None
    return document


def check_document(value: object) -> None:
    """Refuse what a message may not have as its attribute `xml`: anything but null or a document that can be read.

    Parameters
    ----------
    value : the attribute's value

    Raises
    ------
    InputError : one line that says why
    """
    if value is None:
        return
    if not isinstance(value, str):
        raise InputError(
            f"attribute 'xml' must be a document as text, got {type(value).__name__}", name="xml", hint="decode it"
        )
    try:
        parse_document(value)
    except InputError as error:
        raise InputError(f"attribute 'xml' cannot be sent: {error.message}", name="xml") from None


_SEEN: dict[str, Document] = {}
_SEEN_CHARACTERS = [0]
MOST_SEEN_CHARACTERS = 4_000_000
_NOTHING = Document()


def seen_document(text: str) -> Document:
    """The document of a text, read once while many profiles are tested on it; an empty one if it is refused.

    >>> seen_document("<a><b/></a>").labels, seen_document("no document").labels
    (['a', 'b'], [])
    """
    found = _SEEN.get(text)
    if found is None:
        try:
            found = parse_document(text)
        except InputError:
            found = _NOTHING
        if _SEEN_CHARACTERS[0] > MOST_SEEN_CHARACTERS:
            _SEEN.clear()
            _SEEN_CHARACTERS[0] = 0
        _SEEN[text] = found
        _SEEN_CHARACTERS[0] += len(text)
    return found


def _listen(parser: expat.XMLParserType, document: Document, limits: XmlLimits) -> None:
    """Fill the lists of the document from the parser's events. Local names are for speed: this is a hot loop."""
    labels, depth, attributes = document.labels, document.depth, document.attributes
    texts, owner, first_text, end_text = document.texts, document.owner, document.first_text, document.end_text
    open_elements: list[int] = []
    in_text = [False]

    def refuse(why: str) -> NoReturn:
        raise InputError(f"document refused at line {parser.CurrentLineNumber}: {why}", name="document")

    def start(name: str, given: dict[str, str]) -> None:
        if len(open_elements) >= limits.depth:
            refuse(f"elements nest deeper than {limits.depth}")
        if len(labels) >= limits.elements:
            refuse(f"more than {limits.elements} elements")
        if len(given) > limits.attributes:
            refuse(f"an element with more than {limits.attributes} attributes")
        if len(name) > limits.name_chars:
            refuse(f"a name longer than {limits.name_chars} characters")
        depth.append(len(open_elements))
        open_elements.append(len(labels))
        labels.append(name)
        attributes.append(given)
        first_text.append(len(texts))
        end_text.append(0)
        in_text[0] = False

    def end(_name: str) -> None:
        end_text[open_elements.pop()] = len(texts)
        in_text[0] = False

    def text(data: str) -> None:
        if in_text[0]:  # the parser may report one text node in pieces
            texts[-1] += data
        else:
            texts.append(data)
            owner.append(open_elements[-1])
            in_text[0] = True

    def between(*_: str) -> None:  # a comment or instruction ends a text node
        in_text[0] = False

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.CommentHandler = between
    parser.ProcessingInstructionHandler = between
    parser.StartDoctypeDeclHandler = lambda *_: refuse("it has a document type")
    parser.EntityDeclHandler = lambda *_: refuse("it declares an entity")
    parser.ExternalEntityRefHandler = lambda *_: refuse("it refers to an external entity")
