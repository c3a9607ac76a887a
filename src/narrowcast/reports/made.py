"""How a plan was made and checked: the section that every report ends with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from narrowcast.model.plan import Tables
from narrowcast.reports.parts import Report, Section, Tile, facts
from narrowcast.reports.text import THIN, e, number, percent, plural, term_words


def with_verdict(report: Report, plan: Tables, faults: Sequence[str]) -> Report:
    """The report with the verdict on its plan, judged now, and at its end how the plan was made."""
    tiles = (*report.tiles, _tile(plan, faults))
    return replace(report, tiles=tiles, sections=(*report.sections, _made(plan, faults)))


def _tile(plan: Tables, faults: Sequence[str]) -> Tile:
    """Whether it is sound, in a word."""
    if faults:
        return Tile("Checked", "unsound", plural(len(faults), "fault"))
    return Tile("Checked", "sound", "again, for this report" if plan.checks.get("sound") else "for this report", True)


def _made(plan: Tables, faults: Sequence[str]) -> Section:
    """Soundness, cost terms, parameters and fingerprints."""
    parts = [_verdict(plan, faults), "<h3>Cost</h3>", facts(_terms(plan))]
    parts += [
        "<h3>Parameters</h3>",
        facts([("kind", plan.kind), *_key(plan), *_flat(plan.parameters), ("seed", plan.seed)]),
    ]
    if plan.inputs:
        shown = facts(plan.inputs.items(), code=True).replace('class="facts"', 'class="facts long"')
        parts += ["<h3>Inputs (SHA-256)</h3>", shown]
    return Section("made", "How it was made", "".join(parts))


def _verdict(plan: Tables, faults: Sequence[str]) -> str:
    if faults:
        listed = "".join(f"<li>{e(fault)}</li>" for fault in faults[:10])
        return f'<p class="verdict bad">Unsound: do not install this plan</p><ul class="plain">{listed}</ul>'
    seen = plan.checks.get("checked")
    listed = "".join(f"<li>{e(line)}</li>" for line in seen) if isinstance(seen, list) else ""
    more = f'<ul class="plain">{listed}</ul>' if listed else ""
    when = " and again ".join(["when it was written"] * bool(plan.checks.get("sound")) + ["for this report"])
    told = f"Sound: checked {when}, by code that had no part in making it"
    return f'<p class="verdict">{e(told)}</p>{more}'


def _terms(plan: Tables) -> list[tuple[str, str]]:
    found = [(term_words(name), number(float(value))) for name, value in plan.cost.items()]
    if plan.lower_bound is not None:
        found.append(("lower bound", number(plan.lower_bound)))
    if plan.gap is not None:
        found.append(("gap to the bound", percent(plan.gap)))
    return found


def _key(plan: Tables) -> list[tuple[str, str]]:
    return [("flow key", ", ".join(plan.key))] if plan.key else []


def _flat(parameters: Mapping[str, object]) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), _value(value)) for name, value in parameters.items()]


def _value(value: object) -> str:
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return f",{THIN}".join(_value(v) for v in value)
    if isinstance(value, Mapping):
        return "; ".join(f"{k}: {_value(v)}" for k, v in value.items()) or "none"
    return "none" if value is None else str(value)
