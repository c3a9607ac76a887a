"""What package indexes show: README.md with absolute links, and the project's addresses.

The address of the repository is given when a release is built, `make dist HOME_URL=https://…`. Without it links
into the repository become plain text, since an index shows none of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

PAGES = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md", "Source": ""}
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)]+)\)")


class Metadata(MetadataHookInterface):
    """Fills in `readme` and `urls`."""

    def update(self, metadata: dict[str, object]) -> None:
        home = os.environ.get("NARROWCAST_HOME_URL", "").rstrip("/")
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(text, home)}
        metadata["urls"] = {name: f"{home}/blob/main/{path}" if path else home for name, path in PAGES.items() if home}


def absolute(text: str, home: str) -> str:
    """Links into the repository as absolute ones, pictures as the file itself; without a home as their words."""

    def led(link: re.Match[str]) -> str:
        picture, words, path = link.groups()
        if not home:
            return "" if picture else words
        return f"{picture}[{words}]({home}/{'raw' if picture else 'blob'}/main/{path})"

    return LINK.sub(led, text)
