"""Help as people read it, and completion in a real shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command_pages
import pytest
import typer
from typer.testing import CliRunner

from beaufort._core.text import counted, duration
from beaufort.cli._app import _HELP, app


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command, by the words that call it."""
    command = typer.main.get_command(app) if command is None else command
    yield path
    if hasattr(command, "list_commands"):
        for name in command.list_commands(typer.Context(command)):
            yield from commands(command.get_command(typer.Context(command), name), (*path, name))


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_help_names_types_that_people_read(path: tuple[str, ...]) -> None:
    output = {option: CliRunner().invoke(app, [*path, option]) for option in ("-h", "--help")}
    assert output["-h"].exit_code == 0
    assert output["-h"].output == output["--help"].output
    for odd in ("<str>", "<int", "<bool>", "<path>", "<float", "list["):
        assert odd not in output["-h"].output, odd


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_output_has_one_short_name(path: tuple[str, ...]) -> None:
    command: Any = typer.main.get_command(app)
    for word in path:
        command = command.get_command(typer.Context(command), word)
    for option in command.params:
        assert ("--output" in option.opts) == ("-o" in option.opts)


def test_an_option_name_has_one_type_and_one_meaning() -> None:
    every = command_pages.uses()
    for name in {use.name for use in every}:
        assert len({(use.type, use.help) for use in every if use.name == name}) == 1, name


def test_help_lists_commands_as_they_describe_themselves() -> None:
    """`beaufort --help` prints its own list, without importing the commands."""
    root: Any = typer.main.get_command(app)
    context = typer.Context(root)
    for name in root.list_commands(context):
        first = (root.get_command(context, name).help or "").partition("\n\n")[0]
        assert " ".join(first.split()) == _HELP[name]


def test_help_is_fast() -> None:
    code = (
        "import sys; from beaufort.cli import main\n"
        "try: main()\n"
        "except SystemExit: print([m for m in sys.modules if m.startswith(('numpy', 'beaufort.cli.'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--help"], capture_output=True, text=True, check=True, env={**os.environ}
    )
    assert done.stdout.splitlines()[-1] == "['beaufort.cli._app']"


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (
            ["run", "--model", "m", "--data", "d", "--labels", "convention=all,set=x"],
            ["set=x", "convention", "sets"],
        ),
        (["check", "demo:digits", "--labels", "sets=x.json"], ["sets=x.json", "--labels", "convention"]),
        (["testbed", "fit", "--trend", "axes=logit"], ["axes=logit", "--trend", "axis", "knee"]),
        (["testbed", "correlate", "--trend", "knee=none"], ["knee=none", "x=…, fit=…, axis=…"]),
        (["place", "--scores", "x.csv", "--intervals", "resamples=9"], ["resamples=9", "level=…, seed=…"]),
        (["testbed", "fit", "--intervals", "seed=one"], ["seed in --intervals", "integer", "'one'"]),
        (["gate", "--require", "50,60"], ["--require", "metric", "'50'", "'60'"]),
        (["gate", "--require", "clean=101"], ["clean in --require", "101"]),
        (["power", "--drop", "2", "--assume", "accuracy=x"], ["accuracy in --assume", "'x'"]),
        (["report", "results", "--table", "group,intervals=maybe"], ["intervals in --table", "yes or no"]),
    ],
)
def test_errors_of_grouped_values_name_the_key(words: list[str], facts: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    for fact in facts:
        assert fact in " ".join(done.output.split()), done.output


def test_types() -> None:
    text = " ".join(CliRunner().invoke(app, ["corrupt", "-h"], env={"COLUMNS": "160"}).output.split())
    for message in ("source PATH", "--corruption TEXT", "--seed INTEGER", "--format"):
        assert message in text
    assert "--precision NUMBER" in " ".join(CliRunner().invoke(app, ["run", "-h"]).output.split())


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A script that switches completion on in bash and asks for it."""
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "beaufort"
    program.write_text(
        f"#!{sys.executable}\nimport sys\nsys.argv[0] = 'beaufort'\nfrom beaufort.cli import main\nmain()\n"
    )
    program.chmod(0o755)
    return f"""
PATH={folder}:$PATH
eval "$(beaufort --show-completion)"
complete -p beaufort >&2 || exit 1
ask() {{
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _beaufort_completion beaufort; echo "${{COMPREPLY[@]}}"
}}
"""


def test_completion_in_bash(shell: str) -> None:
    options = [
        ("beaufort che", "check"),
        ("beaufort results ver", "verify"),
        ("beaufort run --sui", "--suite"),
        ("beaufort run --suite imagenet-c-v", "imagenet-c-validation"),
        ("beaufort run --corruption fog,sno", "fog,snow"),
    ]
    script = shell + "".join(f"ask {words}\n" for words, _ in options)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        ["bash", "--norc", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=Path.cwd(),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [output for _, output in options], done.stderr


def test_numbers_in_sentences() -> None:
    assert [counted(n, "image") for n in (0, 1, 2)] == ["0 images", "1 image", "2 images"]
    assert counted(2, "class", "classes") == "2 classes"
    assert [duration(s) for s in (0.4, 1, 89, 120, 5399, 7200)] == [
        "0 seconds",
        "1 second",
        "89 seconds",
        "2 minutes",
        "90 minutes",
        "2.0 hours",
    ]
