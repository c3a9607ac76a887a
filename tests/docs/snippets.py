"""Runs what a page shows: its `sh` blocks as one script, then its `python` blocks as one program, in one folder."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# What changes the machine, or is for another one; what it names is checked by other tests.
ELSEWHERE = (
    *("pip ", "make ", "git ", "cd narrowcast", "docker ", "python3 -m venv", "/opt/", "useradd ", "install ", "cp "),
    *("systemctl ", ". .venv/bin/activate", "narrowcast source --config", "narrowcast demo"),
)
# Commands that run until Ctrl-C get one after so many seconds.
UNTIL_CTRL_C = {"narrowcast top  ": 4, "narrowcast console": 6}
# And this one when it has decided for the first time.
ADAPT, DECIDED, MOST_S = "narrowcast adapt --system", ".narrowcast/adapt/timeline.jsonl", 200


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def script(page: Path) -> str:
    """The shell blocks of a page that are for this machine."""
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    found = []
    for line in lines:
        if line.startswith(ELSEWHERE):
            continue
        if line.startswith(ADAPT):
            found.append(_decided(line))
            continue
        seconds = next((s for begin, s in UNTIL_CTRL_C.items() if line.startswith(begin)), None)
        found.append(line if seconds is None else _ended(line, seconds))
    return "\n".join(found)


def _ended(line: str, seconds: int) -> str:
    """The command, ended by Ctrl-C; that must be quiet and no failure."""
    command = line.partition("#")[0].strip()
    return (f"timeout --preserve-status --signal=INT {seconds} {command} 2> stderr.txt\n"
            "cat stderr.txt; ! grep -q Traceback stderr.txt")  # fmt: skip


def _decided(line: str) -> str:
    """The command, ended when it has written its first row; in a shell of its own, so that `$!` stays what it was."""
    command = line.partition("#")[0].strip()
    return (f"( {command} & p=$!\nfor i in $(seq {MOST_S}); do if [ -s {DECIDED} ]; then break; fi; sleep 1; done\n"
            "kill -TERM $p; wait $p )")  # fmt: skip


def run_shell(page: Path, folder: Path) -> str:
    """Run the page's commands in order; whatever `narrowcast up` started does not outlive a failure."""
    try:
        return _run(["bash", "-euo", "pipefail", "-c", script(page)], folder)
    finally:
        subprocess.run([str(BIN / "narrowcast"), "down"], cwd=folder, capture_output=True, check=False)


def run_python(
    page: Path, folder: Path, before: str = "", after: str = "", given: Mapping[str, str] | None = None
) -> str:
    """Run the page's Python as one program; blocks with `async` run inside a coroutine, and for ten seconds at most.

    `given` is what comes right before a block that has these words.
    """
    pieces = []
    for block in blocks(page, "python"):
        pieces += [text for words, text in (given or {}).items() if words in block]
        pieces.append(_plain(block))
    code = "\n".join(pieces)
    return _run([sys.executable, "-c", "\n".join((before, code, after))], folder)


def _plain(block: str) -> str:
    if not re.search(r"^async ", block, re.MULTILINE):
        return block
    inside = textwrap.indent(block, "    ")
    return (f"import asyncio, contextlib\nasync def main():\n{inside}\n"
            "with contextlib.suppress(TimeoutError):\n    asyncio.run(asyncio.wait_for(main(), 10))\n")  # fmt: skip


def _run(command: list[str], folder: Path) -> str:
    env = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "COLUMNS": "120", "MPLBACKEND": "Agg"}
    env |= {"PYTHONPATH": str(ROOT / "tests")}
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               text=True, start_new_session=True)  # fmt: skip
    try:
        said, _ = process.communicate(timeout=280)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise AssertionError(f"{command[-1]}\ndid not end: {process.communicate()[0]}") from None
    assert process.returncode == 0, f"{command[-1]}\n{said}"
    return said
