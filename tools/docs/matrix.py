"""What works with what: every verb run on every kind of plan, as commands, and written to docs/matrix.md.

    .venv/bin/python tools/docs/matrix.py            runs everything (some minutes, with Spark) and writes the page

A cell is a command that ended well. An empty one is a command that was refused, with the reason for people.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "matrix.md"
VERBS = (
    "generate", "measure", "plan", "check", "explain", "whatif", "diff", "report", "export", "deliver", "replay",
    "adapt",
)  # fmt: skip
UP = "up plan --system system --no-multicast --detach && narrowcast publish {messages} --limit 50 --system system && \
narrowcast down --system system"
SHARED = {
    "check": "check plan --messages {messages} --subscriptions {wishes}",
    "diff": "diff plan plan2",
    "report": "report plan --out report.html",
    "deliver": UP,
    "replay": "replay plan {messages} --subscriptions {wishes}",
    "adapt": "adapt --replay {messages} --subscriptions {wishes} --plan plan --every-s {every}{key}",
}
KINDS: dict[str, dict[str, str]] = {
    "channels": {
        "generate": "generate market --out data --subscribers 20 --messages 600 --set symbols=80",
        "measure": "measure data --out measured",
        "plan": "plan channels measured --groups 4 --sessions 12 --out plan",
        "plan2": "plan channels measured --groups 3 --sessions 12 --out plan2",
        "explain": "explain plan --group 0",
        "whatif": "whatif plan --groups 2,4 --workers 1",
        "export": "cyclonedds rti ultramessaging aeron nats csv",
    },
    "hybrid": {
        "generate": "generate market --out data --subscribers 20 --messages 600 --set symbols=80",
        "measure": "measure data --out measured",
        "plan": "plan hybrid measured --groups 4 --out plan",
        "plan2": "plan hybrid measured --groups 3 --out plan2",
        "explain": "explain plan --group 0",
        "whatif": "whatif plan --groups 2,4 --workers 1",
        "export": "cyclonedds rti ultramessaging aeron nats csv",
    },
    "filters": {
        "generate": "generate tree_demand --out data --messages 600",
        "measure": "measure data --out measured",
        "plan": "plan filters measured --k 3 --out plan",
        "plan2": "plan filters measured --k 2 --out plan2",
        "explain": "explain plan --node v0",
        "whatif": "whatif plan --k 1,3 --workers 1",
        "export": "nats csv",
    },
    "semantic": {
        "generate": "generate overlay --out data --messages 600 --subscribers 30",
        "measure": "measure data --out measured",
        "plan": "plan semantic data/topology.parquet data/subscriptions.parquet data/messages.parquet --out plan",
        "plan2": "plan semantic data/topology.parquet data/subscriptions.parquet data/messages.parquet "
        "--method merge --out plan2",
        "explain": "explain plan --channel 0",
        "whatif": "whatif plan --max-channels 8,16 --workers 1",
        "export": "cyclonedds nats csv",
    },
    "queries": {
        "generate": "generate rectangles --out data --messages 600",
        "measure": "measure data --out measured",
        "plan": "plan queries data/queries.parquet --out plan",
        "plan2": "plan queries data/queries.parquet --km 1 --out plan2",
        "explain": "explain plan --channel 0",
        "whatif": "whatif plan --km 1,5 --workers 1",
        "export": "cyclonedds nats csv",
    },
    "network": {
        "generate": "generate network --out data --messages 600 --subscribers 40 --set symbols=120 --set sites=4",
        "measure": "measure data --out measured",
        "plan": "plan network data --out plan --time-limit 5",
        "plan2": "plan network data --filters 0 --out plan2 --time-limit 5",
        "explain": "explain plan --site {site}",
        "whatif": "whatif plan --filters 0,2 --workers 1 --time-limit 2",
        "export": "cyclonedds rti ultramessaging aeron nats csv",
    },
}
REASONS: dict[tuple[str, str], str] = {}
KEYS = {"filters": " --key item", "queries": " --key label"}  # of flows, for statistics
TARGETS = ("cyclonedds", "rti", "ultramessaging", "aeron", "nats", "csv")
NO_TARGET = {
    "filters": "Only NATS has filters inside the network (leaf nodes); the others send by groups.",
    "semantic": "RTI, Ultra Messaging and Aeron choose by flow; these channels are chosen by content.",
    "queries": "RTI, Ultra Messaging and Aeron choose by flow; these channels are chosen by content.",
    "network": "A folder for each site; trees, relays and filters are narrowcast's own and are in csv alone.",
}


def command(kind: str, verb: str, folder: Path) -> str:
    """The command of a cell, as people would type it."""
    own = KINDS[kind]
    if verb == "export":
        at = {"cyclonedds": " --interface lo"}  # which unicast needs
        return " && ".join(
            f"narrowcast export plan --to {each} --out {each}{at.get(each, '')}" for each in own["export"].split()
        )
    text = own.get(verb) or SHARED[verb]
    wishes = "data/wishes.parquet" if (folder / "data" / "wishes.parquet").exists() else "data/subscriptions.parquet"
    every = "60" if kind in ("channels", "hybrid", "network") else "20"
    site = ""
    if "{site}" in text:
        import pyarrow.parquet as pq

        site = str(pq.read_table(folder / "data" / "sites.parquet")["site"][0].as_py())
    return "narrowcast " + text.format(
        messages="data/messages.parquet", wishes=wishes, every=every, site=site, key=KEYS.get(kind, "")
    )


def tried(kind: str, folder: Path) -> dict[str, tuple[str, int, str]]:
    """Run every verb on a kind: the command, its exit code, and what it said last."""
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "COLUMNS": "300"}
    found = {}
    for verb in ("generate", "measure", "plan", "plan2", *VERBS[3:]):
        text = command(kind, verb, folder)
        done = subprocess.run(["bash", "-c", text], cwd=folder, env=env, capture_output=True, text=True, timeout=600)
        said = (done.stderr.strip() or done.stdout.strip() or " ").splitlines()[-1]
        found[verb] = (text, done.returncode, said)
        print(f"{kind:9} {verb:9} {done.returncode} {said[:150] if done.returncode else ''}", flush=True)
    return found


def page(found: dict[str, dict[str, tuple[str, int, str]]]) -> str:
    """The page: the table, reasons for what is empty, and the commands."""
    lines = [
        "# What works with what",
        "",
        "Made by `tools/docs/matrix.py`, which runs every command below. ✓: it ended well.",
        "",
        "| kind | " + " | ".join(VERBS) + " |",
        "|---|" + "---|" * len(VERBS),
    ]
    notes: list[str] = []
    for kind, cells in found.items():
        shown = []
        for verb in VERBS:
            if cells[verb][1] == 0:
                shown.append(f"{len(KINDS[kind]['export'].split())} of {len(TARGETS)}" if verb == "export" else "✓")
            else:
                notes.append(f"- **{kind}, {verb}**: {REASONS[kind, verb]}")
                shown.append("—")
        lines.append(f"| {kind} | " + " | ".join(shown) + " |")
    notes += [
        f"- **{kind}, export** to {', '.join(KINDS[kind]['export'].split())}. {why}" for kind, why in NO_TARGET.items()
    ]
    lines += ["", *notes]
    for kind, cells in found.items():
        lines += ["", f"## {kind}", "", "```text", *(cells[v][0] for v in cells if cells[v][1] == 0), "```"]
    return "\n".join(lines) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kinds", default=",".join(KINDS), help="only these")
    arguments.add_argument("--keep", type=Path, help="a folder for results: the page is made once all kinds are there")
    given = arguments.parse_args()
    keep = given.keep or Path(tempfile.mkdtemp())
    keep.mkdir(parents=True, exist_ok=True)
    for kind in given.kinds.split(","):
        with tempfile.TemporaryDirectory() as folder:
            (keep / f"{kind}.json").write_text(json.dumps(tried(kind, Path(folder))))
    if all((keep / f"{kind}.json").exists() for kind in KINDS):
        found = {kind: json.loads((keep / f"{kind}.json").read_text()) for kind in KINDS}
        wrong = [
            (kind, verb)
            for kind, cells in found.items()
            for verb in cells
            if (cells[verb][1] != 0) != ((kind, verb) in REASONS)
        ]
        if wrong:
            sys.exit(f"cells that are not as they should be: {wrong}")
        PAGE.write_text(page(found), encoding="utf-8")


if __name__ == "__main__":
    main()
