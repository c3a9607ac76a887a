"""`narrowcast profile`: understand one profile, or how two compare."""

from __future__ import annotations

from typing import Annotated

import typer

from narrowcast.cli.output import AsJson, output, print_json, table


def profile(
    profile: Annotated[
        str, typer.Argument(help="The WHERE clause of SQL over a message's attributes, or an XPath over its document.")
    ],
    other: Annotated[str | None, typer.Argument(help="A second profile to compare with the first.")] = None,
    json: AsJson = False,
) -> None:
    """Check a profile and show what it means; with a second one, how the two relate.

    Examples:

        narrowcast profile "symbol IN ('IBM','MSFT') AND price > 100"

        narrowcast profile "price > 100" "price BETWEEN 200 AND 300"

        narrowcast profile "//order" "//order[@venue = 'N']/symbol"
    """
    from narrowcast.profiles import Profile

    first = Profile.parse(profile)
    result: dict[str, object] = {"profile": str(first), "attributes": first.kinds}
    if other is not None:
        second = Profile.parse(other)
        result |= {
            "other": str(second),
            "covers": first.covers(second),
            "covered": second.covers(first),
            "overlaps": first.overlaps(second),
            "both": str(first & second),
            "only_first": str(first - second),
        }
    if json:
        print_json(result)
        return
    rows = [(key.replace("_", " "), _show(value)) for key, value in result.items()]
    output.print(table("Profile", ("", "meaning"), rows))


def _show(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({kind})" for name, kind in value.items()) or "none"
    return value
