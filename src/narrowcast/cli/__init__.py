"""The command line: a face with no logic of its own.

Exit codes: 0 done, 1 failed, 2 bad input (one line: what, where, how to fix it), 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from narrowcast.errors import InputError, NarrowcastError, ProfileError

STOPPED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str], app: Any = None, name: str = "narrowcast") -> int:
    """Run the command line, or another app in its manner, and return its exit code."""
    import typer

    if app is None:
        from narrowcast.cli.app import app
        from narrowcast.cli.renamed import with_new_names

        arguments = with_new_names(arguments)

    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        result = typer.main.get_command(app).main(list(arguments), prog_name=name, standalone_mode=False)
        if result == STOPPED:  # typer may turn Ctrl-C into an exit code before we see it
            return _stopped()
        return result if isinstance(result, int) else 0
    except usage_error as error:
        return _usage(error, arguments)
    except ProfileError as error:
        code = _complain(str(error), 2)
        if sys.stderr.isatty() and error.position is not None:
            print(error.pointer(), file=sys.stderr)
        return code
    except InputError as error:
        return _complain(str(error), 2)
    except NarrowcastError as error:
        return _complain(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        return _stopped()
    except BrokenPipeError:
        return _unread()
    except SystemExit as error:  # click's own answer to a closed pipe
        return _unread() if error.code == 1 else int(error.code or 0)


def _unread() -> int:
    """`narrowcast … | head` is no failure, and what is still to be flushed goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _stopped() -> int:
    return _complain("stopped; nothing half-written was left in place", STOPPED)


def _complain(message: str, code: int) -> int:
    print(f"narrowcast: {' '.join(message.split())}", file=sys.stderr)
    return code


def _usage(error: BaseException, arguments: Sequence[str]) -> int:
    if not arguments:
        return 0  # the help was shown
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "narrowcast")
    text = str(getattr(error, "format_message", lambda: str(error))()).rstrip(".")
    return _complain(f"{text} (see {command} --help)", 2)
