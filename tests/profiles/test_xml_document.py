"""The parser reads plain documents and refuses hostile ones at once."""

from __future__ import annotations

import time

import pytest

from narrowcast.errors import InputError
from narrowcast.profiles.xpath.document import XmlLimits, parse_document

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
HOSTILE = {
    "billion laughs": f'<!DOCTYPE x [<!ENTITY l0 "lol">{LAUGHS}]><x>&l9;</x>',
    "quadratic blow-up": f'<!DOCTYPE x [<!ENTITY a "{"a" * 50_000}">]><x>{"&a;" * 5_000}</x>',
    "a file read": '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
    "an address read": '<!DOCTYPE x [<!ENTITY a SYSTEM "http://169.254.169.254/">]><x>&a;</x>',
    "an outer document type": '<!DOCTYPE x SYSTEM "http://example.com/x.dtd"><x/>',
    "a public document type": '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0//EN" "x.dtd"><html/>',
    "parameter entities": "<!DOCTYPE x [<!ENTITY % p \"<!ENTITY a 'b'>\"> %p;]><x>&a;</x>",
    "default attributes": '<!DOCTYPE x [<!ATTLIST x y CDATA "z">]><x/>',
    "an empty document type": "<!DOCTYPE x><x/>",
    "recursive entities": '<!DOCTYPE x [<!ENTITY a "&b;"><!ENTITY b "&a;">]><x>&a;</x>',
    "an undefined entity": "<x>&nbsp;</x>",
    "depth": "<a>" * 50_000 + "</a>" * 50_000,
    "depth never closed": "<a>" * 200_000,
    "size": "<a>" + "x" * 1_000_001 + "</a>",
    "many elements": "<a>" + "<b/>" * 60_000 + "</a>",
    "many attributes": "<a " + " ".join(f"a{i}='1'" for i in range(5_000)) + "/>",
    "a long name": f"<{'a' * 100_000}/>",
    "an attribute twice": "<a x='1' x='2'/>",
    "unequal tags": "<a><b></a></b>",
    "never closed": "<a><b>",
    "two roots": "<a/><b/>",
    "nothing": "",
    "blanks": " \n ",
    "no markup": "just text",
    "a null character": "<a>\0</a>",
    "a forbidden reference": "<a>&#0;</a>",
    "half a surrogate": "<a>&#xD800;</a>",
    "broken UTF-8": b"<a>\xff\xfe\xfa</a>",
    "an unknown encoding": b"<?xml version='1.0' encoding='no-such-code'?><a/>",
    "an encoding that is none": b"<?xml version='1.0' encoding='zlib'?><a/>",
    "UTF-7": b"<?xml version='1.0' encoding='UTF-7'?>+ADw-a/+AD4-",
    "an open comment": "<a><!-- x",
    "an open CDATA": "<a><![CDATA[ x</a>",
    "two dashes in a comment": "<a><!-- x -- y --></a>",
    "an unbound prefix": "<n:a/>",
    "less-than in an attribute": "<a x='<'/>",
    "a lone surrogate in the text": "<a>\ud800</a>",
    "a late declaration": "<a><?xml version='1.0'?></a>",
    "XML 2.0": "<?xml version='2.0'?><!DOCTYPE a><a/>",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_document_is_refused_quickly_with_one_line(name: str) -> None:
    start = time.perf_counter()
    with pytest.raises(InputError, match="document refused") as caught:
        parse_document(HOSTILE[name])
    assert time.perf_counter() - start < 0.5
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_limits_bind_exactly() -> None:
    nested = "<a><a><a/></a></a>"
    assert parse_document(nested, XmlLimits(depth=3)).depth == [0, 1, 2]
    with pytest.raises(InputError, match="deeper than 2"):
        parse_document(nested, XmlLimits(depth=2))
    with pytest.raises(InputError, match="more than 2 elements"):
        parse_document(nested, XmlLimits(elements=2))
    with pytest.raises(InputError, match="at most 17 bytes, got 18"):
        parse_document(nested, XmlLimits(size_bytes=17))


def test_text_nodes_end_at_elements_comments_and_instructions_only() -> None:
    document = parse_document("<a>one &lt; <![CDATA[two]]><b>x</b>three<!-- c -->four<?i?>five</a>")
    assert document.own_texts(0) == ["one < two", "three", "four", "five"]
    assert document.value(0) == "one < twoxthreefourfive"
    assert document.value(1) == "x"


def test_a_long_text_is_one_node() -> None:
    assert parse_document("<a>" + "word\n" * 100_000 + "</a>").texts == ["word\n" * 100_000]


def test_other_encodings_are_read() -> None:
    assert parse_document("<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>".encode("latin-1")).texts == ["é"]
    assert parse_document("<a>é</a>".encode("utf-16")).texts == ["é"]
    assert parse_document("<?xml version='1.0' encoding='ISO-8859-1'?><a>é</a>").texts == ["é"]
