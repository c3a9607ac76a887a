"""What `make docs` adds to the pages under docs/: reference, examples, contributing, changelog, list of decisions.

Links that leave docs/ lead to those pages, or become plain text where the site has nothing for them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import commands  # noqa: E402
import python_names  # noqa: E402

# Files outside docs/ that are pages of the site.
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#]+)(#[^)]*)?\)")


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages."""
    made = {
        "reference/commands.md": commands.page(),
        "reference/python.md": python_names.page(),
        "examples.md": _examples(),
        "decisions/index.md": _decisions(),
        **{name: (ROOT / path).read_text(encoding="utf-8") for path, name in PAGES.items()},
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links that leave docs/ to a page of the site."""
    origin = next((ROOT / path for path, name in PAGES.items() if name == page.file.src_uri), None)
    here = (origin or Path(config.docs_dir) / page.file.src_uri).parent
    depth = "../" * page.file.src_uri.count("/")

    def led(link: re.Match[str]) -> str:
        text, target, anchor = link.groups()
        path = (here / target).resolve()
        inside = path.is_relative_to(config.docs_dir) or ((here / target).parent == here and target in files.src_uris)
        if inside and path != Path(config.docs_dir) / "decisions":
            return link[0] if origin is None else f"[{text}]({depth}{path.relative_to(config.docs_dir)}{anchor or ''})"
        led_to = _page_for(path, config)
        return f"[{text}]({depth}{led_to})" if led_to else text

    return LINK.sub(led, markdown)


def _page_for(path: Path, config: Any) -> str | None:
    """The page that shows a file or folder of the repository, if the site has one."""
    if path == Path(config.docs_dir) / "decisions":
        return "decisions/index.md"
    inside = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    if inside in PAGES:
        return PAGES[inside]
    if inside == "examples":
        return "examples.md"
    if inside.startswith("examples/"):
        name = Path(inside).parts[1]
        return f"examples.md#{Path(name).stem.replace('_', '-')}"
    return None


def _examples() -> str:
    """Every example, whole."""
    text = ["# Examples", "", "Each runs as it stands, in an empty folder, and is run by the tests."]
    for path in sorted((ROOT / "examples").glob("*.py")):
        code = path.read_text(encoding="utf-8").strip()
        text += ["", f"## {path.stem.replace('_', '-')}", "", "```python", code, "```"]
    for folder in sorted(each for each in (ROOT / "examples").iterdir() if (each / "README.md").is_file()):
        readme = (folder / "README.md").read_text(encoding="utf-8").partition("\n")[2]
        text += ["", f"## {folder.name}", LINK.sub(lambda link: link[1], readme)]
        for path in sorted(each for each in folder.rglob("*") if each.is_file() and each.suffix not in (".md", ".pyc")):
            text += ["", f"`{path.relative_to(folder)}`:", "", "```", path.read_text(encoding="utf-8").strip(), "```"]
    return "\n".join(text) + "\n"


def _decisions() -> str:
    """One line per decision."""
    text = ["# Decisions", "", "Why things are as they are, with what was tried and not kept. One page each.", ""]
    for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        text.append(f"- [{title}]({path.name})")
    return "\n".join(text) + "\n"
