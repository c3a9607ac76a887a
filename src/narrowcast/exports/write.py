"""An exported plan on disk: a folder that is complete or not there, with `export.json` to say what it is."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path

from narrowcast.exports.files import Files
from narrowcast.exports.options import Options
from narrowcast.model.plan import Plan
from narrowcast.model.whole_folder import whole_folder
from narrowcast.version import __version__

HEAD = "export.json"


def write_files(
    files: Files, plan: Plan, target: str, options: Options, out: str | Path, *, overwrite: bool = False
) -> Path:
    """Write what a target made of a plan; the same plan and options give the same bytes."""
    parameters = plan.to_tables().parameters
    with whole_folder(out, marker=HEAD, overwrite=overwrite) as half:
        digests = {}
        for name, text in files.texts.items():
            content = text.encode()
            (half / name).parent.mkdir(exist_ok=True)
            (half / name).write_bytes(content)
            digests[name] = hashlib.sha256(content).hexdigest()
        head = {
            "narrowcast": __version__,
            "target": target,
            "plan": {"kind": plan.kind, "seed": plan.seed, "key": list(plan.key), "parameters": dict(parameters)},
            "options": asdict(options),
            "notes": files.notes,
            "files": digests,
        }
        (half / HEAD).write_text(json.dumps(head, indent=2, default=str) + "\n", encoding="utf-8")
    return Path(out)
