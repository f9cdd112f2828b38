"""Help as people read it, and completion in a real shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command_options
import pytest
import typer
from typer.testing import CliRunner

from beaufort._core.text import counted, duration
from beaufort.cli import app
from beaufort.corruptions import corruptions


def commands(command: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every command, by the words that call it."""
    command = typer.main.get_command(app) if command is None else command
    yield path
    if hasattr(command, "list_commands"):
        for name in command.list_commands(typer.Context(command)):
            yield from commands(command.get_command(typer.Context(command), name), (*path, name))


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_help_names_types_that_people_read(path: tuple[str, ...]) -> None:
    told = {option: CliRunner().invoke(app, [*path, option]) for option in ("-h", "--help")}
    assert told["-h"].exit_code == 0
    assert told["-h"].output == told["--help"].output
    for odd in ("<str>", "<int", "<bool>", "<path>", "<float", "list["):
        assert odd not in told["-h"].output, odd


@pytest.mark.parametrize("path", list(commands()), ids=" ".join)
def test_output_has_one_short_name(path: tuple[str, ...]) -> None:
    command: Any = typer.main.get_command(app)
    for word in path:
        command = command.get_command(typer.Context(command), word)
    for option in command.params:
        assert ("--output" in option.opts) == ("-o" in option.opts)


def test_an_option_name_has_one_type_and_one_meaning() -> None:
    every = command_options.uses()
    for name in {use.name for use in every}:
        assert len({(use.type, use.help) for use in every if use.name == name}) == 1, name


def test_types() -> None:
    text = " ".join(CliRunner().invoke(app, ["corrupt", "-h"], env={"COLUMNS": "160"}).output.split())
    for said in ("source PATH", "--corruption TEXT", "--seed INTEGER", "--format"):
        assert said in text
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
    asked = [
        ("beaufort che", "check"),
        ("beaufort store ver", "verify"),
        ("beaufort run --sui", "--suite"),
        ("beaufort run --suite imagenet-c-v", "imagenet-c-validation"),
        ("beaufort run --corruption fog,sno", "fog,snow"),
    ]
    script = shell + "".join(f"ask {words}\n" for words, _ in asked)
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
    assert done.stdout.splitlines() == [answer for _, answer in asked], done.stderr


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


def test_the_scale_auto_is_told_as_it_is() -> None:
    """It said that the nearest published constants are taken; they are mixed since sizes have no jumps."""
    root: Any = typer.main.get_command(app)
    (parameter,) = [one for one in root.commands["corrupt"].params if one.name == "scale"]
    assert "auto takes those of the short side, or goes between the two sizes around it" in parameter.help
    sigma = [corruptions["gaussian_noise"].params(3, "auto", side=side).sigma for side in (64, 100, 224)]
    assert sigma[0] < sigma[1] < sigma[2]
