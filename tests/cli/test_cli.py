"""The command line: output, exit codes, and files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import beaufort
from beaufort._core.errors import OptionError
from beaufort._core.text import printable
from beaufort.cli import app
from beaufort.cli._options import severity_list
from beaufort.corruptions import corruptions
from tests.commands import shows
from tests.data.writers.outputs import contents

RUNNER = CliRunner()
ANSI = re.compile(r"\x1b\[[0-9;]*m")
FAST = ["--corruption", "brightness,gaussian_noise", "--severity", "1,4"]


def run(*arguments: object) -> tuple[int, str, str]:
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, ANSI.sub("", result.stdout), ANSI.sub("", result.stderr)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    folder.mkdir()
    rng = np.random.default_rng(2)
    for name in ("a.png", "b.jpg", "c.png"):
        Image.fromarray(rng.integers(0, 256, (32, 40, 3), np.uint8)).save(folder / name)
    return folder


def test_version() -> None:
    assert run("--version") == (0, f"beaufort {beaufort.__version__}\n", "")


def test_corrupt_a_folder_and_again(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, text, errors = run("corrupt", source, out, *FAST, "--jobs", 2)
    assert (code, errors) == (0, "")
    assert text == f"12 written to {out}\n"
    assert (out / "gaussian_noise/4/b.jpg").is_file()
    code, text, _ = run("corrupt", source, out, *FAST)
    assert (code, text) == (0, f"0 written to {out}, 12 existed\n")


def test_corrupt_a_file(source: Path, tmp_path: Path) -> None:
    code, _, _ = run(
        "corrupt", source / "a.png", tmp_path / "out", *FAST, "--format", "jpeg", "--quality", 40
    )
    assert code == 0
    assert (tmp_path / "out/brightness/1/a.jpg").is_file()


def test_failures_are_listed_at_the_end(source: Path, tmp_path: Path) -> None:
    (source / "empty.png").touch()
    (source / "notes.txt").touch()
    code, out, errors = run("corrupt", source, tmp_path / "out", *FAST)
    assert code == 1
    assert out.endswith("1 other file ignored, 1 failure\n")
    assert errors.count("\n") == 1
    assert shows(errors, "failed", "empty.png", "0 bytes")


def test_json_is_for_programs(source: Path, tmp_path: Path) -> None:
    (source / "empty.png").touch()
    code, out, errors = run("corrupt", source, tmp_path / "out", *FAST, "--json")
    data = json.loads(out)
    assert (code, errors) == (1, "")
    assert data["done"] == 12
    (failure,) = data["failures"]
    assert failure["path"] == "empty.png"
    assert "0 bytes" in failure["message"]


def test_many_failures_are_cut_short(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i in range(25):
        (tmp_path / "in" / f"{i}.png").touch()
    code, _, errors = run("corrupt", tmp_path / "in", tmp_path / "out", *FAST)
    assert code == 1
    assert errors.count("failed:") == 20
    assert shows(errors, "5 more", "--json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--corruption", "fogg"], "did you mean 'fog'"),
        (["--corruption", "wether"], "did you mean 'weather'"),
        (["--severity", "6"], "1-5"),
        (["--severity", "5-1"], "1-5"),
        (["--severity", ""], "1-5"),
        (
            ["--corruption", "fog@2+snow@3", "--severity", "4"],
            "--severity 4 cannot be used with fog@2+snow@3",
        ),
        (["--scale", "huge"], "available: auto, relative"),
        (["--jobs", "0"], "--jobs"),
        (["--quality", "101"], "from 1 to 100"),
        (["--format", "gif"], "keep"),
    ],
)
def test_invalid_options_are_reported(
    source: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    code, out, errors = run("corrupt", source, tmp_path / "out", *arguments)
    assert code == 2
    assert message in errors
    assert out == ""
    assert not (tmp_path / "out").exists()


def test_invalid_folders_are_reported(source: Path, tmp_path: Path) -> None:
    assert run("corrupt", tmp_path / "nothing", tmp_path / "out")[0] == 2
    assert run("corrupt", source, source / "out")[0] == 2
    assert run("corrupt", source, source / "a.png")[0] == 2
    run("corrupt", source, tmp_path / "out", *FAST)
    code, _, errors = run("corrupt", source, tmp_path / "out", *FAST, "--seed", 9)
    assert code == 2
    assert shows(errors, "seed 0", "9")


def test_make(tmp_path: Path) -> None:
    (tmp_path / "cifar").mkdir()
    np.save(tmp_path / "cifar/images.npy", np.full((3, 32, 32, 3), 90, np.uint8))
    np.save(tmp_path / "cifar/labels.npy", np.array([1, 2, 3]))
    arguments = ["make", "cifar10-c", tmp_path / "cifar", tmp_path / "out", "--corruption", "contrast"]
    code, out, _ = run(*arguments, "--limit", 2, "--json")
    assert code == 0
    assert json.loads(out)["done"] == 2
    assert np.load(tmp_path / "out/contrast.npy").shape == (10, 32, 32, 3)
    assert run("make", "cifar-c", tmp_path / "cifar", tmp_path / "out")[0] == 2
    code, _, errors = run(*arguments, "--limit", 2, "--extra")
    assert (code, "extra" in errors) == (2, True)


@pytest.mark.parametrize("option", [["--seed", 3], ["--jobs", 2], ["--limit", 2], ["--extra"]])
def test_icons_open_is_made_without_options(option: list[object], tmp_path: Path) -> None:
    code, _, errors = run("make", "icons-open", tmp_path / "out", *option)
    assert (code, "only its output directory" in errors) == (2, True)


def test_gallery(source: Path, tmp_path: Path) -> None:
    code, _, _ = run("gallery", source / "a.png", "--output", tmp_path / "out", "--corruption", "contrast")
    assert code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["gallery.html", "gallery.png"]
    (source / "cut.png").write_bytes((source / "a.png").read_bytes()[:50])
    code, _, errors = run("gallery", source / "cut.png", "--output", tmp_path / "out")
    assert code == 2
    assert "cut.png" in errors


def test_ls_corruptions() -> None:
    code, out, _ = run("ls", "corruptions")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1:]][:3] == beaufort.get_corruption_names("noise")
    assert len(out.splitlines()) == 1 + len(corruptions)
    code, out, _ = run("ls", "corruptions", "mnist-c", "--json")
    assert [found["name"] for found in json.loads(out)] == beaufort.get_corruption_names("mnist-c")
    code, _, errors = run("ls", "corruptions", "mnist")
    assert code == 2
    assert "did you mean" in errors


def test_an_interruption_ends_with_130(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("beaufort.data.writers.corrupt_tree", interrupt)
    code, _, errors = run("corrupt", source, tmp_path / "out")
    assert code == 130
    assert "interrupted" in errors


@pytest.mark.parametrize(
    ("text", "expected"), [("3", [3]), ("1-5", [1, 2, 3, 4, 5]), ("5,1,1-2", [1, 2, 5]), (" 2 , 4 ", [2, 4])]
)
def test_severities(text: str, expected: list[int]) -> None:
    assert severity_list(text) == expected


@pytest.mark.parametrize("text", ["", "0", "1-6", "a", "1,", "1--2", "-1", "5.5", "1.50", "2-1"])
def test_invalid_severity(text: str) -> None:
    with pytest.raises(OptionError, match="must be like 3, 1-5"):
        severity_list(text)


def test_names_cannot_steer_the_terminal() -> None:
    assert printable("caf\xe9\x1b[2J\n\udce9") == "caf\xe9\\x1b[2J\\n\\udce9"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "beaufort", *map(str, arguments)]


def importing(module: str, folder: Path) -> dict[str, str]:
    """The environment of a command that imports a module of a folder first."""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, "PYTHONPATH": path, "BEAUFORT_IMPORT": module}


def test_as_a_process(source: Path, tmp_path: Path) -> None:
    (source / "bomb.bmp").write_bytes(
        b"BM"
        + bytes(12)
        + (40).to_bytes(4, "little")
        + (12_000).to_bytes(4, "little") * 2
        + b"\1\0\x18\0"
        + bytes(24)
    )
    (tmp_path / "still.py").write_text("from beaufort.cli import _console\n_console.clock = lambda: 0.0\n")
    done = subprocess.run(
        command("corrupt", source, tmp_path / "out", *FAST),
        env=importing("still", tmp_path),  # no line a minute on stderr, however slow the machine is
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == f"12 written to {tmp_path / 'out'}, 1 failure\n"
    assert done.stderr.startswith("failed: bomb.bmp: an image must have")
    assert len(done.stderr.splitlines()) == 1


def many(tmp_path: Path) -> Path:
    folder = tmp_path / "many"
    folder.mkdir()
    rng = np.random.default_rng(3)
    for i in range(24):
        Image.fromarray(rng.integers(0, 256, (32, 32, 3), np.uint8)).save(folder / f"{i:02}.png")
    return folder


HELD = """
from itertools import count
from beaufort.data.writers import image_tree as _tree

run_bounded = _tree.run_bounded

def held(work, tasks, collect, *, jobs, stop):
    begun = count()
    def until_stopped(task):
        if next(begun) >= 20:
            stop.wait()
        return work(task)
    run_bounded(until_stopped, tasks, collect, jobs=jobs, stop=stop)

_tree.run_bounded = held
"""
"""A command that imports this does the first of its tasks, and waits then until it is stopped."""


def stop_midway(arguments: list[str], out: Path, number: signal.Signals) -> subprocess.CompletedProcess[str]:
    """Start a command, send it a signal when some of its outputs are there."""
    (out.parent / "held.py").write_text(HELD)
    process = subprocess.Popen(
        arguments,
        env=importing("held", out.parent),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509  a background job ignores it
    )
    deadline = time.monotonic() + 600
    while len(list(out.rglob("*.png"))) < 10:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(number)
    text, errors = process.communicate(timeout=600)
    return subprocess.CompletedProcess(arguments, process.returncode, text, errors)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_stopped_is_completed_by_the_next(tmp_path: Path, number: signal.Signals) -> None:
    source, out = many(tmp_path), tmp_path / "out"
    options = (*FAST, "--jobs", 2)
    arguments = command("corrupt", source, out, *options)
    stopped = stop_midway(arguments, out, number)
    if number == signal.SIGINT:
        assert stopped.returncode == 130
        assert "Traceback" not in stopped.stderr
        assert not [name for name in contents(out) if name.endswith(".part")]
    assert 10 <= len(contents(out)) < 97
    leftover = out / "brightness/1" / f".beaufort-{'0' * 8}-1-{'0' * 8}-0.part"
    if leftover.parent.is_dir():
        leftover.write_bytes(b"half")
        os.utime(leftover, (0, 0))
    subprocess.run(arguments, check=True, capture_output=True)
    fresh = tmp_path / "fresh"
    assert run("corrupt", source, fresh, *options)[0] == 0
    assert contents(out) == contents(fresh)
    assert len(contents(out)) == 97


def test_importing_the_command_line_is_light() -> None:
    heavy = (
        "import sys, beaufort.cli; print([m for m in ('numba', 'cv2', 'torch', 'PIL') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", heavy], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("line", "kind"), [("return 1 / 0", "ZeroDivisionError"), ("raise EOFError('cut')", "RuntimeError")]
)
def test_an_error_of_code_of_the_users_is_exit_code_2_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, kind: str
) -> None:
    (tmp_path / "failing_nets.py").write_text(f"def make():\n    {line}\n")
    np.savez(tmp_path / "few.npz", images=np.zeros((2, 32, 32, 3), np.uint8), labels=np.arange(2))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "failing_nets", raising=False)
    options = ("--data", "few.npz", "--corruption", "fog", "--store", "s")
    code, _, output = run("run", "--model", "python:failing_nets:make", *options)
    assert code == 2
    assert 'failing_nets.py", line 2, in make' in output
    assert f"beaufort: the command crashed ({kind})" in output
