"""XPath profiles with namespaces: prefixes declared with the profile, local-name(), and a word where they lack."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from narrowcast.cli import run
from narrowcast.errors import ProfileError
from narrowcast.plans.semantic.window import read_profile
from narrowcast.profiles.xpath.match import XPathMatcher
from narrowcast.profiles.xpath.namespaces import missed_namespaces
from narrowcast.profiles.xpath.xpath import XPath

SPACES = {"f": "urn:f", "g": "http://example.org/g"}
DOCUMENT = """<t:trade xmlns:t="urn:f" xmlns="urn:h" t:id="7" id="8"><party xml:lang="en">A</party>
  <t:leg><rate xmlns="">1.5</rate></t:leg></t:trade>"""


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("/f:trade", True),
        ("/trade", False),
        ("/g:trade", False),
        ("/f:*", True),
        ("//g:*", False),
        ("/f:trade/f:leg/rate", True),
        ("/f:trade/f:leg/f:rate", False),
        ("/f:trade[@f:id = 7]", True),
        ("/f:trade[@f:id = 8]", False),
        ("/f:trade[@id = 8]", True),
        ("//@xml:lang", True),
        ("/*[local-name() = 'trade']", True),
        ("/*[local-name() = 'leg']", False),
        ("//*[local-name() = 'party' and . = 'A']", True),
        ("//*[local-name() != 'trade']", True),
        ("//*[namespace-uri() = 'urn:h']/@xml:lang", True),
        ("//rate[namespace-uri()]", False),
        ("//rate[local-name()]", True),
        ("/f:trade/f:*[rate]", True),
    ],
)
def test_names_are_found_in_the_namespace_that_their_prefix_stands_for(path: str, matches: bool) -> None:
    wanted = XPath.parse(path, SPACES)
    assert wanted.matches(DOCUMENT) is matches
    assert XPathMatcher([wanted, "//nothing"]).match([DOCUMENT])[0].size == int(matches)
    assert read_profile(str(wanted)) == read_profile(wanted), "its text holds all there is to it"


def test_declarations_stand_after_the_path_as_in_xml() -> None:
    assert XPath.parse("//f:leg xmlns:f='urn:f'").matches(DOCUMENT)
    assert XPath.parse('//party xmlns="urn:h"').matches(DOCUMENT)
    assert not XPath.parse("//party").matches(DOCUMENT)
    assert XPath.parse('//party[@id = 8] xmlns="urn:h"').pattern != XPath.parse("//party[@id = 8]").pattern
    assert XPath.parse("/f:trade[@id = 8] xmlns:f='urn:f' xmlns='urn:f'").matches(DOCUMENT), "not for attributes"
    assert XPath.parse("""//a[. = " xmlns:f='u'"]""").matches("<a> xmlns:f='u'</a>"), "not inside a string"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("//f:a", "namespace prefix 'f' is not declared at character 3"),
        ("//a[@f:x]", "namespace prefix 'f' is not declared"),
        ("//f: xmlns:f='u'", "expected a name after the prefix"),
        ("//f:a xmlns:f=u", "is not declared"),
        ("//local-name()", "expected a name|not supported"),
        ("//a[position() = 1]", r"position\(\) is not supported"),
    ],
)
def test_what_is_not_declared_or_not_known_is_refused_by_name(path: str, says: str) -> None:
    with pytest.raises(ProfileError, match=says):
        XPath.parse(path)


def test_covering_holds_only_within_a_namespace() -> None:
    wide, narrow = XPath.parse("//f:a", SPACES), XPath.parse("//f:a[@x]/f:b", SPACES)
    assert wide.covers(narrow)
    assert not wide.covers(XPath.parse("//g:a[@x]/g:b", SPACES))
    assert not XPath.parse("//a").covers(narrow)
    assert not XPath.parse("/f:a", SPACES).overlaps(XPath.parse("/g:a", SPACES))
    assert XPath.parse("/*[local-name() = 'a']").overlaps(XPath.parse("/f:a", SPACES))


def document(rng: Random) -> str:
    def element(level: int) -> str:
        name = rng.choice(["a", "b", "c", "p:a", "p:b", "q:c"])
        inside = "".join(element(level + 1) for _ in range(rng.randint(0, 3))) if level < 4 else rng.choice(["", "1"])
        given = "".join(f' {n}="{rng.randint(0, 2)}"' for n in ("x", "p:x", "q:y") if rng.random() < 0.3)
        change = rng.choice(["", "", "", ' xmlns=""', ' xmlns="urn:f"', ' xmlns="http://example.org/g"'])
        return f"<{name}{change}{given}>{inside}</{name}>"

    default = rng.choice(["", ' xmlns="urn:f"', ' xmlns="urn:h"'])
    return f'<a xmlns:p="urn:f" xmlns:q="http://example.org/g"{default}>{element(1)}{element(1)}</a>'


def path(rng: Random) -> str:
    def step() -> str:
        name = rng.choice(["a", "b", "c", "*", "f:a", "f:b", "g:c", "f:*", "g:*"])
        return name + rng.choice(["", "", "", f"[{condition()}]"])

    def condition() -> str:
        text = rng.choice(["'a'", "'b'", "'c'"])
        space = rng.choice(["'urn:f'", "'urn:h'", "''"])
        return rng.choice(
            [f"local-name() = {text}", f"local-name() != {text}", f"namespace-uri() = {space}", "namespace-uri()",
             "@f:x", "@x = 1", "@g:y != 2", f"not(local-name() = {text})", f"f:a or local-name() = {text}", "g:c"]
        )  # fmt: skip

    return "".join(rng.choice(["/", "//"]) + step() for _ in range(rng.randint(1, 3)))


def test_lxml_agrees_on_random_paths_and_documents_with_namespaces() -> None:
    etree = pytest.importorskip("lxml.etree")
    rng = Random(11)
    paths, documents = [path(rng) for _ in range(150)], [document(rng) for _ in range(60)]
    theirs = [etree.XPath(f"boolean({p})", namespaces=SPACES) for p in paths]
    trees = [etree.fromstring(d).getroottree() for d in documents]
    expected = {(i, j) for i, tree in enumerate(trees) for j, wanted in enumerate(theirs) if wanted(tree)}
    ours = [XPath.parse(p, SPACES) for p in paths]
    rows, cols = XPathMatcher(ours).match(documents)
    assert set(zip(rows.tolist(), cols.tolist(), strict=True)) == expected
    assert {(i, j) for i, d in enumerate(documents) for j, p in enumerate(ours) if p.matches(d)} == expected
    assert 0.05 < len(expected) / (len(paths) * len(documents)) < 0.95


def test_profiles_that_miss_a_default_namespace_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = pa.table({"xml": [f"<trade xmlns='urn:f' id='{i}'><leg/></trade>" for i in range(4)]})
    assert missed_namespaces([read_profile(XPath.parse("//f:leg", SPACES)), read_profile("x > 1")], documents) == []
    assert missed_namespaces([read_profile("//absent")], documents) == []
    (said,) = missed_namespaces([read_profile("/trade/leg")], documents)
    assert "leg, trade in no namespace" in said
    assert "xmlns='urn:f'" in said
    pq.write_table(pa.table({"u": ["a"], "v": ["b"]}), tmp_path / "topology.parquet")
    wishes = {"subscriber": ["s"], "profile": ["//trade[@id = 1]"], "node": ["b"]}
    pq.write_table(pa.table(wishes), tmp_path / "subscriptions.parquet")
    pq.write_table(documents.append_column("source", pa.array(["a"] * 4)), tmp_path / "messages.parquet")
    tables = [str(tmp_path / f"{name}.parquet") for name in ("topology", "subscriptions", "messages")]
    assert run(["plan", "semantic", *tables, "--json"]) == 0
    assert "XPath profiles ask for trade in no namespace" in " ".join(capsys.readouterr().err.split())
