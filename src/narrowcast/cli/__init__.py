"""The command line: a face with no logic of its own.

Exit codes: 0 done; 1 done, and the answer is no (an unsound plan, something in the way); 2 bad input (one line: what,
where, how to fix it); 3 it could not be done; 4 a fault in narrowcast; 130 stopped by Ctrl-C.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from narrowcast.errors import InputError, NarrowcastError, ProfileError

BAD_INPUT, IMPOSSIBLE, FAULT, STOPPED = 2, 3, 4, 130
#: The extra that brings a package.
EXTRAS = {
    "cryptography": "runtime", "cyclonedds": "dds", "nats": "runtime", "opentelemetry": "otel", "pandas": "spark",
    "prometheus_client": "console", "pyspark": "spark", "resvg_py": "plots", "starlette": "console",
    "topohub": "topologies", "uvicorn": "console", "zmq": "runtime",
}  # fmt: skip
VERBOSE = ("-v", "--verbose")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str], app: Any = None, name: str = "narrowcast") -> int:
    """Run the command line, or another app in its manner, and return its exit code."""
    import typer

    if app is None:
        from narrowcast.cli.app import app
        from narrowcast.cli.arguments import with_new_names

        arguments = verbose_first(with_new_names(arguments))

    usage_error: type[Exception] = typer.BadParameter.__mro__[1]
    try:
        result = typer.main.get_command(app).main(list(arguments), prog_name=name, standalone_mode=False)
        if result == STOPPED:  # typer may turn Ctrl-C into an exit code before we see it
            return _stopped()
        return result if isinstance(result, int) else 0
    except usage_error as error:
        return _usage(error, arguments)
    except ProfileError as error:
        code = _complain(str(error), BAD_INPUT)
        if sys.stderr.isatty() and error.position is not None:
            print(error.pointer(), file=sys.stderr)
        return code
    except InputError as error:
        return _complain(str(error), BAD_INPUT)
    except NarrowcastError as error:
        return _complain(str(error), IMPOSSIBLE)
    except ModuleNotFoundError as error:
        return _missing(error, arguments)
    except (KeyboardInterrupt, typer.Abort):
        return _stopped()
    except BrokenPipeError:
        return _unread()
    except OSError as error:
        if _by_ctrl_c(error):
            return _stopped()
        where = f"{error.filename}: " if error.filename else ""
        return _complain(f"{where}{error.strerror or error}", IMPOSSIBLE)
    except SystemExit as error:  # click's own answer to a closed pipe
        return _unread() if error.code == 1 else int(error.code or 0)
    except Exception as error:
        return _stopped() if _by_ctrl_c(error) else _fault()


def _by_ctrl_c(error: BaseException | None) -> bool:
    """Whether an exception came up while Ctrl-C was being obeyed, as when Java is asked to stop and has gone already.

    >>> _by_ctrl_c(ValueError("x"))
    False
    """
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def verbose_first(arguments: Sequence[str]) -> list[str]:
    """The same arguments with -v, wherever it stood, where it is understood: before the command.

    >>> verbose_first(["check", "plan", "-v"]), verbose_first(["match", "--", "-v"])
    (['-v', 'check', 'plan'], ['match', '--', '-v'])
    """
    words = list(arguments)
    end = words.index("--") if "--" in words else len(words)
    rest = [word for word in words[:end] if word not in VERBOSE]
    return [*(["-v"] if len(rest) < end else []), *rest, *words[end:]]


def _missing(error: ModuleNotFoundError, arguments: Sequence[str]) -> int:
    """A package that an extra brings is named with it; any other is a fault."""
    package = (error.name or "").partition(".")[0]
    extra = EXTRAS.get(package)
    if extra is None:
        return _fault()
    command = next((word for word in arguments if not word.startswith("-")), "this command")
    what = f"narrowcast {command} needs {package}, which is not installed: pip install 'narrowcast[{extra}]'"
    return _complain(what, IMPOSSIBLE)


def _fault() -> int:
    import traceback

    traceback.print_exc()
    return _complain("a fault in narrowcast itself; please report it with the lines above", FAULT)


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
    return _complain(f"{must_be(text)} (see {command} --help)", BAD_INPUT)


def must_be(text: str) -> str:
    """A complaint of the parser in the words of all others.

    >>> must_be("Invalid value for '--groups': Input should be greater than or equal to 1")
    '--groups must be greater than or equal to 1'
    >>> must_be("Invalid value for '--to': Value error, 'x' is not one of 'nats', 'csv'")
    "--to must be one of 'nats', 'csv', got 'x'"
    """
    found = re.fullmatch(r"Invalid value for '(.+?)': (?:Value error, )?(.*)", text, re.DOTALL)
    if found is None:
        return text
    name, why = found.groups()
    if choice := re.fullmatch(r"('.*?') is not one of (.*)", why):
        return f"{name} must be one of {choice[2]}, got {choice[1]}"
    if why.startswith("Input should be "):
        return f"{name} must be {why.removeprefix('Input should be ').partition(', unable to')[0]}"
    return f"{name}: {why}"
