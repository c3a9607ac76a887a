"""The page around a report: one file, its style and script inside it, and a policy that forbids any request."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files

from narrowcast.reports.parts import Report, Section, Tile
from narrowcast.reports.text import e
from narrowcast.version import __version__


def page(report: Report) -> str:
    """The report as HTML. The browser itself refuses to load or send anything, whatever a name may hold."""
    style, script = _asset("report.css"), _asset("report.js")
    policy = (
        f"default-src 'none'; img-src data:; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    # Inside a script element only `</` and `<!--` are special; no name may end it.
    data = json.dumps(report.data, allow_nan=False).replace("<", "\\u003c")
    links = "".join(f'<a href="#{e(s.id)}">{e(s.title)}</a>' for s in report.sections)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{e(policy)}">
<title>{e(report.title)} · narrowcast</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>
<div class="inner">
<p class="brand">narrowcast <span>{e(report.title)}</span></p>
<h1>{e(report.headline)}</h1>
<p class="summary">{e(report.summary)}</p>
<ul class="tiles">{"".join(tile_markup(tile) for tile in report.tiles)}</ul>
</div>
</header>
<nav aria-label="Sections"><div class="inner">{links}</div></nav>
<main id="content" class="inner">
{"".join(section_markup(s) for s in report.sections)}
</main>
<footer class="inner">Made by narrowcast {e(__version__)}. This file holds all it needs; it asks nothing of the network.
</footer>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    return files("narrowcast.reports").joinpath(name).read_text(encoding="utf-8")


def tile_markup(tile: Tile) -> str:
    """A tile as markup."""
    style = ' class="good"' if tile.good else ""
    return f"<li{style}><span>{e(tile.label)}</span><strong>{e(tile.value)}</strong><em>{e(tile.note)}</em></li>"


def section_markup(section: Section, under: str = "") -> str:
    """A section as markup; `under` comes before its id and makes its heading a lower one, inside another page."""
    name, level = (f"{under}-{section.id}", 3) if under else (section.id, 2)
    lead = f'<p class="lead">{e(section.lead)}</p>' if section.lead else ""
    body = section.body.replace("<h3>", "<h4>").replace("</h3>", "</h4>") if under else section.body
    return (
        f'<section id="{e(name)}" aria-labelledby="{e(name)}-title">'
        f'<h{level} id="{e(name)}-title">{e(section.title)}</h{level}>{lead}{body}</section>\n'
    )
