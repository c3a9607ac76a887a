"""What a channel carries, in words that fit into a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from narrowcast.plans.semantic.content import Both, Content, Either, Less, Wants
from narrowcast.plans.semantic.routers.audience import AudienceRouter

if TYPE_CHECKING:
    from narrowcast.plans.semantic.result import SemanticPlan

MOST_NAMED = 12
MOST_DEEP = 4


def told(made: SemanticPlan, names: NDArray[Any]) -> list[str]:
    """A line per channel: a condition where it is short; long lists end with how many more there are.

    The exact rule is in the other tables of a plan. Under `search` it is about gateways: which of
    them have a client that wants the message.
    """
    if not isinstance(made.router, AudienceRouter):
        texts = [str(profile) for profile in made.system.profiles]
        return [_formula(channel.content(), texts, 0) for channel in made.channels]
    lines = []
    for c, channel in enumerate(made.channels):
        here = names[list(channel.gateways)].tolist()
        if c >= len(made.router.core):
            lines.append(f"wanted at {_some(here, ' or ')}, and served by no channel better")
            continue
        core = names[made.system.gateways[made.router.core[c]]].tolist()
        if len(core) == len(here):
            lines.append(f"wanted at exactly {_some(here, ', ')}")
        else:
            lines.append(f"wanted at {_some(core, ' and ') or 'some'} and at none but {_some(here, ', ')}")
    return lines


def _some(items: list[str], between: str) -> str:
    more = f"{between}{len(items) - MOST_NAMED} more" if len(items) > MOST_NAMED else ""
    return between.join(str(item) for item in items[:MOST_NAMED]) + more


def _formula(content: Content, texts: list[str], depth: int) -> str:
    if depth > MOST_DEEP:
        return "…"
    match content:
        case Wants():
            items = [texts[i] for i in content.profiles]
            return items[0] if len(items) == 1 else _some([f"({item})" for item in items], " OR ")
        case Both():
            return _some([f"({_formula(part, texts, depth + 1)})" for part in content.parts], " AND ")
        case Either():
            return _some([f"({_formula(part, texts, depth + 1)})" for part in content.parts], " OR ")
        case Less():
            whole, without = (_formula(part, texts, depth + 1) for part in (content.whole, content.without))
            return f"({whole}) AND ({without}) IS NOT TRUE"
