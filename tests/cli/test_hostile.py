"""The command line among hostile folders, services and disks."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.commands import invoke
from tests.json_service import JsonService, Reply

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENT = {**os.environ, "COLUMNS": "100", "no_proxy": "*", "PYTHONPATH": str(ROOT / "src")}

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX system")


def beaufort(*words: str | Path, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    """The command as the shell starts it, in a folder."""
    code = "import sys; sys.argv[0] = 'beaufort'; from beaufort.cli import main; main()"
    command = [sys.executable, "-P", "-c", code, *map(str, words)]
    given = {"capture_output": True, "text": True, "env": ENVIRONMENT, "timeout": 900, **options}
    return subprocess.run(command, cwd=cwd, check=False, **given)  # type: ignore[call-overload, no-any-return]


@pytest.fixture
def digits(tmp_path: Path) -> Path:
    np.savez(tmp_path / "digits.npz", images=np.zeros((4, 28, 28), np.uint8), labels=np.arange(4))
    return tmp_path / "digits.npz"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: small\nversion: 1\ndataset: mnist-test\nscale: mnist\n"
        "corruptions: [fog]\nseverities: [1]\nclean: yes\n"
    )
    return path


TRAP = "import pathlib\npathlib.Path('sprung').write_text('x')\nraise ImportError('not the real one')\n"


def test_files_of_the_working_folder_are_not_run(tmp_path: Path, digits: Path, suite: Path) -> None:
    for name in ("onnxruntime", "numpy", "PIL", "yaml", "httpx2", "pyarrow", "rich", "torch"):
        (tmp_path / f"{name}.py").write_text(TRAP)
    done = beaufort(
        "run", "--model", "demo:digits", "--suite", suite, "--data", digits, "--store", "s", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "sprung").exists()


def test_python_m_leaves_the_working_folder_too(tmp_path: Path, digits: Path, suite: Path) -> None:
    """Python looks there first, and imports what `import beaufort` needs, but not what models need."""
    (tmp_path / "onnxruntime.py").write_text(TRAP)
    words = ["run", "--model", "demo:digits", "--suite", suite, "--data", digits, "--store", "s"]
    command = [sys.executable, "-m", "beaufort", *map(str, words)]
    done = subprocess.run(
        command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "sprung").exists()


def test_a_python_model_of_the_working_folder_is_found_last(
    tmp_path: Path, digits: Path, suite: Path
) -> None:
    (tmp_path / "onnxruntime.py").write_text(TRAP)
    (tmp_path / "nets.py").write_text(
        "import onnxruntime, numpy as np\n"
        "def make():\n    return lambda images: np.zeros((len(images), 10), np.float32)\n"
    )
    words: list[str | Path] = ["run", "--model", "python:nets:make"]
    words += ["--suite", suite, "--data", digits, "--store", "s"]
    done = beaufort(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "sprung").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["ls", "corruptions"], ["ls", "corruptions", "--json"], ["--version"]])
def test_a_full_disk_behind_stdout(tmp_path: Path, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = beaufort(*words, cwd=tmp_path, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_device_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    """A report written to /dev/full is an error, and /dev/full stays what it is."""
    from beaufort._core.files import write_bytes

    with pytest.raises(OSError, match="No space left"):
        write_bytes(Path("/dev/full"), b"x")
    assert Path("/dev/full").is_char_device()
    os.mkfifo(tmp_path / "pipe")
    with os.fdopen(os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK), "rb") as end:
        write_bytes(tmp_path / "pipe", b"abc")
        assert end.read() == b"abc"
    assert (tmp_path / "pipe").is_fifo()


def ten(path: str, headers: Mapping[str, str], requested: Any) -> Reply:
    """A service of ten classes that knows whom it serves."""
    assert path == "/c?key=SECRET"
    assert headers["Authorization"] == "Bearer SECRET-TOKEN"
    return Reply({"logits": [list(range(10))] * len(requested["images"])})


def test_secrets_do_not_reach_the_store_or_the_page(
    tmp_path: Path, digits: Path, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = JsonService(ten)
    environment = {**ENVIRONMENT, "HIDDEN_VARIABLE": "SECRET-TOKEN"}
    model = f"{server.url}/c?key=SECRET"
    words: list[str | Path] = [
        "--set",
        "token=HIDDEN_VARIABLE",
        "--set",
        "version=7",
        "--set",
        "classes=10",
        "--store",
        tmp_path / "s",
    ]
    run = ("run", "--model", model, "--suite", suite, "--data", digits, *words)
    done = beaufort(*run, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("HIDDEN_VARIABLE", "SECRET-TOKEN")
    for shown in (done.stdout + done.stderr, invoke(*map(str, run), "--json")):
        assert not [word for word in ("SECRET", "HIDDEN") if word in shown]
    for output in ("page.html", "page.md", "page.json", "page.csv"):
        invoke("report", str(tmp_path / "s"), "-o", str(tmp_path / output), "--intervals", "resamples=100")
    server.close()
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 7
    assert not [path for path in kept if b"SECRET" in path.read_bytes() or b"HIDDEN" in path.read_bytes()]


def test_secrets_are_neither_stored_nor_printed(tmp_path: Path, digits: Path, suite: Path) -> None:
    service = "http://127.0.0.1:9/c?key=SECRET"
    run: list[str | Path] = ["run", "--suite", suite, "--data", digits, "--store", tmp_path / "s"]
    run += ["--set", "retries=0"]
    done = beaufort(*run, "--model", service, "--set", "token=HIDDEN_VARIABLE", cwd=tmp_path)
    assert done.returncode == 2
    assert "HIDDEN" not in done.stderr
    environment = {**ENVIRONMENT, "HIDDEN_VARIABLE": "SECRET-TOKEN"}
    done = beaufort(
        *run,
        "--model",
        service,
        "--set",
        "token=HIDDEN_VARIABLE",
        "--set",
        "classes=10",
        cwd=tmp_path,
        env=environment,
    )
    assert done.returncode == 2
    assert "127.0.0.1:9/c did not respond" in done.stderr
    assert "Traceback" not in done.stderr
    for text in (done.stdout, done.stderr):
        assert "SECRET" not in text
        assert "HIDDEN" not in text
    for file in (path for path in tmp_path.rglob("*") if path.is_file()):
        assert b"SECRET" not in file.read_bytes(), file
        assert b"HIDDEN" not in file.read_bytes(), file


def test_names_cannot_steer_the_terminal(tmp_path: Path) -> None:
    done = beaufort("run", "--model", "\x1b[2Jx.onnx", "--suite", "\x1b[31m", "--data", "d", cwd=tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr
    assert "\\x1b[31m" in done.stderr  # the suite is looked at first
    done = beaufort("check", "\x1b[2Jx.onnx", "--data", "d", cwd=tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stderr


def test_a_terminal_that_knows_few_characters(tmp_path: Path) -> None:
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": "latin-1"}
    words = ["run", "--model", "x.onnx", "--suite", "\u2603", "--data", "d"]
    done = beaufort(*words, cwd=tmp_path, env=environment)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert "\\u2603" in done.stderr


def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    Image.new("RGB", (32, 32)).save(source / os.fsdecode(b"\xe9.png"))
    (source / os.fsdecode(b"\xff.png")).write_bytes(b"x")
    done = beaufort(
        "corrupt", source, tmp_path / "out", "--corruption", "fog", "--severity", "1", cwd=tmp_path
    )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert len(list((tmp_path / "out" / "fog" / "1").iterdir())) == 1


def test_links_that_lead_to_themselves(tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.mkdir()
    Image.new("RGB", (32, 32)).save(source / "a.png")
    (source / "round").symlink_to(source / "round")
    (tmp_path / "out").symlink_to(tmp_path / "out")
    words = ["--corruption", "fog", "--severity", "1"]
    done = beaufort("corrupt", source, tmp_path / "out", *words, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    done = beaufort("corrupt", source, tmp_path / "good", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "good" / "fog" / "1" / "a.png").is_file()
