"""XPath profiles: what they mean, what they refuse, when one covers another, and many at once."""

from __future__ import annotations

import pickle
from random import Random

import pyarrow as pa
import pytest

from naive import random_xml
from narrowcast.errors import ProfileError
from narrowcast.profiles import Matcher, Profile
from narrowcast.profiles.predicate import predicate
from narrowcast.profiles.xpath.match import XPathMatcher
from narrowcast.profiles.xpath.xpath import XPath

DOCUMENT = """<orders xmlns:n="urn:n"><order id="7" venue="N"><price>101.5</price><symbol>IBM</symbol>
  <note>fast<!-- hm --> please</note></order><order id="8"><price>9</price><n:symbol>X</n:symbol></order></orders>"""


@pytest.mark.parametrize(
    ("path", "matches"),
    [
        ("/orders", True),
        ("/order", False),
        ("//order", True),
        ("/orders/order/symbol", True),
        ("/orders/symbol", False),
        ("/orders//symbol", True),
        ("/*/*/price", True),
        ("//*[@id='7']/symbol", True),
        ("//*[@id='8']/symbol", False),  # that symbol has a namespace
        ("//*[@id='8']/*[.='X']", True),
        ("//order[@venue]", True),
        ("//order[not(@venue)]", True),
        ("//order[@venue][@id=8]", False),
        ("//order[price > 100]/symbol", True),
        ("//order[price > 100 and @id = 8]", False),
        ("//order[price > 100 or @id = 8]/*", True),
        ("//note[text()='fast']", True),
        ("//note[.='fast please']", True),
        ("//note[text()='fast please']", False),
        ("//@venue", True),
        ("/orders/@venue", False),
        ("/orders//@venue", True),
        ("//order/@*", True),
        ("//order[.//text()='IBM']", True),
        ("//order[symbol/text()='IBM'][price]", True),
        ("//order[@id != 7]", True),
        ("//order[@id < '8']/symbol", True),
        ("//symbol/text()", True),
        ("//order[.]", True),
    ],
)
def test_a_path_finds_what_xpath_says(path: str, matches: bool) -> None:
    assert XPath.parse(path).matches(DOCUMENT) is matches
    assert XPathMatcher([path]).match([DOCUMENT])[0].size == int(matches)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "must start with / or //"),
        ("a/b", "must start with / or //"),
        ("/", "expected a name"),
        ("/a[", "found the end"),
        ("/a[]", "expected a name"),
        ("/a[1]", "positions like"),
        ("/a[@x=]", "expected a string or a number"),
        ("/a[@x='v]", "unexpected character"),
        ("/a[count(b) > 1]", r"count\(\) is not supported"),
        ("/a/..", "expected a name"),
        ("/ancestor::a", "axis ancestor::"),
        ("/n:a", "namespace prefix 'n' is not declared"),
        ("/@x", "neither attributes nor text"),
        ("/a]", "unexpected ']'"),
        ("/a[/b]", "must start at its element"),
        ("/a | /b", r"unexpected '\|'"),
        ("/a[@x = @y]", "expected a string or a number"),
        ("/" + "/".join("a" * 65), "more than 64 steps"),
        ("/a" + "[b" * 17 + "]" * 17, "deeper than 16"),
        ("/a" * 3000, "longer than 4096"),
        ("/a[" + " and ".join(f"(@a{i} or @b{i})" for i in range(9)) + "]", "512 alternatives"),
        ("/\ud800", "unexpected character"),
    ],
)
def test_what_is_outside_the_subset_is_refused_with_its_place(path: str, says: str) -> None:
    with pytest.raises(ProfileError, match=says) as caught:
        XPath.parse(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wide", "narrow"),
    [
        ("//a", "/a"),
        ("//b", "/a/b"),
        ("/*/b", "/a/b"),
        ("/a//c", "/a/b/c"),
        ("//a[b]", "//a[b/c][@x]"),
        ("//a[.//c]", "//a/b/c"),
        ("//a[@x]", "//a[@x='1']"),
        ("//a[@x > 3]", "//a[@x = 5]"),
        ("//a[@x > 3]", "//a[@x = '5.0']"),
        ("//a[@x > 3]", "//a[@x >= 4]"),
        ("//a[@x != 3]", "//a[@x < 3]"),
        ("//a[@* > 3]", "//a[@x > 4]"),
        ("//a[b or c]", "//a[c]"),
        ("//a[not(b)]", "//a[not(b)][c]"),
        ("//@x", "/a/@x"),
    ],
)
def test_covering_is_seen(wide: str, narrow: str) -> None:
    assert XPath.parse(wide).covers(XPath.parse(narrow))
    assert not XPath.parse(narrow).covers(XPath.parse(wide))


def test_unequal_roots_never_overlap_and_everything_else_may() -> None:
    assert not XPath.parse("/a/b").overlaps(XPath.parse("/b//c"))
    assert XPath.parse("/a/b").overlaps(XPath.parse("//c"))
    assert XPath.parse("/*/b").overlaps(XPath.parse("/b"))


def test_a_yes_of_covers_holds_on_every_document() -> None:
    rng = Random(5)
    paths = [XPath.parse(random_xml.xpath(rng, steps=2, plain=i % 3 > 0)) for i in range(150)]
    documents = [random_xml.document(rng, rng.randint(1, 12)) for _ in range(150)]
    rows, cols = XPathMatcher(paths).match(documents)
    matched = [set(rows[cols == j].tolist()) for j in range(len(paths))]
    yes = [(w, n) for w in range(len(paths)) for n in range(len(paths)) if w != n and paths[w].covers(paths[n])]
    assert len(yes) > 100
    assert [(str(paths[w]), str(paths[n])) for w, n in yes if not matched[n] <= matched[w]] == []
    apart = [(a, b) for a in range(150) for b in range(a) if not paths[a].overlaps(paths[b])]
    assert apart
    assert not any(matched[a] & matched[b] for a, b in apart)


def test_many_paths_at_once_agree_with_one_at_a_time() -> None:
    rng = Random(1)
    paths = [random_xml.xpath(rng) for _ in range(120)]
    documents = [random_xml.document(rng, rng.randint(1, 20)) for _ in range(60)]
    rows, cols = XPathMatcher(paths).match(documents)
    one_by_one = [XPath.parse(path) for path in paths]
    expected = [(i, j) for i, d in enumerate(documents) for j, path in enumerate(one_by_one) if path.matches(d)]
    assert list(zip(rows.tolist(), cols.tolist(), strict=True)) == expected
    assert 0.02 < len(expected) / 7200 < 0.5


def test_no_paths_and_no_documents_match_nothing() -> None:
    assert XPathMatcher([]).match(["<a/>"])[0].size == 0
    assert XPathMatcher(["/a"]).match([])[0].size == 0


def disagreements(n: int, seed: int) -> int:
    etree = pytest.importorskip("lxml.etree")
    rng = Random(seed)
    paths = [random_xml.xpath(rng) for _ in range(n)]
    documents = [random_xml.document(rng, rng.randint(1, 30)) for _ in range(n)]
    oracles = [etree.XPath(f"boolean({path})") for path in paths]
    trees = [etree.ElementTree(etree.fromstring(d)) for d in documents]
    truth = {(i, j) for i, tree in enumerate(trees) for j, oracle in enumerate(oracles) if oracle(tree)}
    rows, cols = XPathMatcher(paths).match(documents)
    assert truth
    return len(truth ^ set(zip(rows.tolist(), cols.tolist(), strict=True)))


def test_lxml_agrees_on_every_path_and_document() -> None:
    assert disagreements(200, seed=1) == 0


@pytest.mark.nightly
def test_lxml_agrees_on_a_thousand_paths_and_documents() -> None:
    assert disagreements(1000, seed=2) == 0


def test_profiles_take_both_notations_and_mix_them() -> None:
    path = Profile.parse(" //order[@venue = 'N']/symbol ")
    assert (path.text, path.attributes, path.kinds) == ("//order[@venue = 'N']/symbol", ("xml",), {"xml": "string"})
    both = Profile.parse("price > 1 AND xpath_boolean(xml, '//order[@venue = ''N'']')")
    assert Profile.parse(both.text) == both
    assert Profile.parse("//order").covers(path)
    assert Profile.parse("//order").covers(both)
    assert not path.covers(Profile.parse("//order"))
    assert not Profile.parse("/a").overlaps(Profile.parse("/b"))
    assert pickle.loads(pickle.dumps(both)) == both
    left = path - Profile.parse("//order[@x]")
    assert Profile.parse(left.text, limits=None) == left
    document = "<order venue='N'><symbol/></order>"
    assert both.matches({"price": 2, "xml": document})
    assert not both.matches({"price": 2})
    assert not path.matches({"xml": f"<!DOCTYPE order [<!ENTITY a 'b'>]>{document}"}), "refused: nothing is in it"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("//a[", "expected a name"),
        ("xpath_boolean(xml, 3)", "takes a path in quotes"),
        ("xpath_boolean(xml, 'a')", "must start with /"),
        ("xml > 3 AND xpath_boolean(xml, '//a')", "cannot be compared with a string"),
        ("xpath_boolean(xml)", "unexpected"),
    ],
)
def test_paths_that_are_none_are_refused_in_profiles(text: str, says: str) -> None:
    with pytest.raises(ProfileError, match=says):
        Profile.parse(text)


@pytest.mark.parametrize("seed", range(3))
def test_the_matcher_agrees_with_the_definition_on_both_notations(seed: int) -> None:
    rng = Random(seed)
    texts = [random_xml.xpath(rng) for _ in range(40)]
    quoted = ["xpath_boolean(xml, '" + text.replace("'", "''") + "')" for text in texts]
    texts += [f"n > {k % 3} AND {each}" for k, each in enumerate(quoted[:15])]
    texts += [f"NOT {each} OR n = 1" for each in quoted[15:30]] + [f"({quoted[0]}) IS NOT TRUE"]
    texts += ["xml LIKE '%red%' AND NOT xpath_boolean(xml, '//a')", "n = 1", "xml IS NULL"]
    profiles = [Profile.parse(text) for text in texts]
    profiles += [profiles[0] - profiles[1], Profile.any_of(profiles[:40])]
    rows = [
        {"n": rng.randrange(4), "xml": rng.choice([None, "junk", "<a>", *[random_xml.document(rng)] * 17])}
        for _ in range(150)
    ]
    found = zip(*Matcher(profiles).match(pa.Table.from_pylist(rows)), strict=True)
    slow = [(i, j) for i, row in enumerate(rows) for j, each in enumerate(profiles) if each.matches(row)]
    assert [(int(i), int(j)) for i, j in found] == slow
    fast = [(i, j) for i, row in enumerate(rows) for j, each in enumerate(profiles) if predicate(each)(row)]
    assert fast == slow
    for one in profiles[:60]:
        for other in profiles[:60:7]:
            if one.covers(other):
                assert all(one.matches(row) for row in rows if other.matches(row)), (one, other)
            if not one.overlaps(other):
                assert not any(one.matches(row) and other.matches(row) for row in rows), (one, other)
