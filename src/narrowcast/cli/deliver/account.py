"""`narrowcast account`: who may connect to a system, as what, and what they may see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.deliver.running import HERE, SystemFolder
from narrowcast.cli.output import AsJson, notes, output, print_json, table

account = typer.Typer(
    help="Accounts: who may connect, as what, and what they may see. One credential file for each.",
    no_args_is_help=True,
)


@account.command()
def add(
    name: Annotated[str, typer.Argument(help="The name of the account: letters, digits, dots and dashes.")],
    role: Annotated[
        str, typer.Option(help="What it may do: publisher, subscriber, source, broker, coordinator, gate or admin.")
    ] = "subscriber",
    entitled: Annotated[
        str | None,
        typer.Option(help="What a subscriber may see, as a profile, such as \"region = 'EU'\". Default: everything."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Where to write the credential. Default: NAME.credential.")] = None,
    server: Annotated[
        str | None, typer.Option(help="Where NATS is, as nats://host:4222, if it is not the one of the data folder.")
    ] = None,
    system: SystemFolder = Path(HERE),
) -> None:
    """Make an account and its credential: a file that is all its owner needs to connect.

    Examples:

        narrowcast account add desk-17 --entitled "region = 'EU'"

        narrowcast subscribe "price > 100" --system desk-17.credential
    """
    from narrowcast.deliver.processes.backbone import url_of
    from narrowcast.deliver.transport.private_file import write_private
    from narrowcast.deliver.trust.accounts import Accounts, account_of
    from narrowcast.errors import InputError

    made = account_of(name, role, entitled)
    path = out or Path(f"{name}.credential")
    if path.exists():
        raise InputError(f"{path} exists", name="out", got=str(path), hint="give another --out, or move it away")
    url = server or url_of(system).partition("?")[0]
    url_file = system / "nats.url"
    _, _, authority = url_file.read_text(encoding="utf-8").partition("\n") if url_file.is_file() else ("", "", "")
    made = Accounts(system).add(made)
    write_private(path, made.credential(url, authority if server is None else ""))
    told = "" if made.role != "subscriber" else f", may see {made.entitled or 'everything'}"
    output.print(f"{name}: {role}{told}; credential: {path}", soft_wrap=True, markup=False)
    _settle(system)


@account.command(name="list")
def list_accounts(system: SystemFolder = Path(HERE), json: AsJson = False) -> None:
    """List the accounts of a system."""
    from narrowcast.deliver.trust.accounts import Accounts

    found = Accounts(system).listed()
    if json:
        known = [{"name": a.name, "role": a.role, "entitled": a.entitled, "since": a.since} for a in found]
        print_json({"accounts": known})
        return
    rows = [(a.name, a.role, "" if a.role != "subscriber" else a.entitled or "everything", a.since) for a in found]
    output.print(table(f"Accounts of {system}", ("name", "role", "may see", "since"), rows))


@account.command()
def revoke(name: Annotated[str, typer.Argument(help="The account.")], system: SystemFolder = Path(HERE)) -> None:
    """End an account: its connections are dropped, its subscriptions end, and the keys of all sessions change.

    Example:

        narrowcast account revoke desk-17
    """
    from narrowcast.deliver.trust.accounts import Accounts

    Accounts(system).revoke(name)
    output.print(f"{name}: revoked", markup=False)
    _settle(system)


@account.command()
def apply(
    nats: Annotated[str, typer.Option(help="The URL of NATS with the credential of an admin, or its file.")],
    system: SystemFolder = Path(HERE),
    name: Annotated[str, typer.Option(help="The name of the system on that server.")] = "nc",
) -> None:
    """With NATS of your own: write FOLDER/accounts.conf for it to include, and tell the running system.

    Include the file in the server's configuration once (`authorization { include accounts.conf }`), and reload the
    server after each change: nats-server --signal reload.

    Example:

        narrowcast account apply --nats admin.credential --system accounts
    """
    import asyncio

    from narrowcast.deliver.processes.admission import write_accounts
    from narrowcast.deliver.processes.backbone import backbone, url_of
    from narrowcast.deliver.transport.private_file import write_private
    from narrowcast.deliver.trust.accounts import Accounts, nats_users

    found = Accounts(system).listed()

    async def write() -> int:
        base = await backbone(url_of(nats), name="account", system=name)
        try:
            await write_accounts(base.registry, found)
            return base.system.shards
        finally:
            await base.close()

    shards = asyncio.run(write())
    path = system / "accounts.conf"
    write_private(path, f"users: [\n{nats_users(found, name, shards)}]\n")
    output.print(f"{len(found)} accounts in {path}; have NATS reload its configuration", soft_wrap=True, markup=False)


def _settle(system: Path, timeout: float = 15.0) -> None:
    """Until whoever runs the system has let the accounts in; without one, a word."""
    import time

    from narrowcast.deliver.processes.supervise import state_of
    from narrowcast.deliver.trust.accounts import Accounts
    from narrowcast.errors import TransportError

    wanted, end = Accounts(system).state, time.monotonic() + timeout
    while (state := state_of(system)) is not None:
        if state.get("accounts") == wanted:
            notes.print("in force")
            return
        if time.monotonic() >= end:
            raise TransportError(f"not in force after {timeout:g} s; see {system / 'up.log'}", endpoint=str(system))
        time.sleep(0.05)
    notes.print("in force from the next start of narrowcast up, or narrowcast account apply")
