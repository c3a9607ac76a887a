"""XPath matching against lxml in the same run: the same paths and documents, parsing counted on both sides.

    python benchmarks/speed/xpath.py [--documents 1000] [--paths 10 100 1000]

lxml runs one compiled `boolean(path)` per path and document. Ours compiles all paths into one matcher;
its making is timed apart. Both must agree on every pair, or the run ends with an error.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from lxml import etree

from naive import random_xml
from narrowcast.profiles.xpath.match import XPathMatcher


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--paths", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--elements", type=int, default=30, help="the largest document's elements")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng = Random(args.seed)
    documents = [random_xml.document(rng, rng.randint(1, args.elements)) for _ in range(args.documents)]
    XPathMatcher(["//a[@x > 1]"]).match(documents[:1])  # compile the kernel
    print(f"{'paths':>6} {'lxml s':>9} {'ours s':>9} {'making s':>9} {'faster':>7} {'matched':>8}")
    for n in args.paths:
        paths = [random_xml.xpath(rng) for _ in range(n)]
        start = time.perf_counter()
        oracles = [etree.XPath(f"boolean({path})") for path in paths]
        trees = [etree.ElementTree(etree.fromstring(d)) for d in documents]
        theirs = [(i, j) for i, tree in enumerate(trees) for j, oracle in enumerate(oracles) if oracle(tree)]
        lxml_s = time.perf_counter() - start
        start = time.perf_counter()
        matcher = XPathMatcher(paths)
        making_s = time.perf_counter() - start
        start = time.perf_counter()
        rows, cols = matcher.match(documents)
        ours_s = time.perf_counter() - start
        if list(zip(rows.tolist(), cols.tolist(), strict=True)) != theirs:
            sys.exit(f"disagreement at {n} paths")
        share = len(theirs) / (n * len(documents))
        print(f"{n:>6} {lxml_s:>9.3f} {ours_s:>9.3f} {making_s:>9.3f} {lxml_s / ours_s:>6.1f}x {share:>8.1%}")


if __name__ == "__main__":
    main()
