"""Install a wheel or source distribution into an empty environment and try the main commands there.

    python tools/smoke_test.py dist/beaufort-0.1.0-py3-none-any.whl

The commands run in a temporary directory, so nothing of the repository can be imported. `dist/` gets
`dependencies.txt`, the versions that were installed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_EXAMPLE = """
import numpy as np
import beaufort

image = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
foggy = beaufort.corrupt(image, "fog", severity=3)
assert foggy.shape == image.shape and foggy.dtype == np.uint8 and (foggy != image).any()
"""
_MODEL = "import beaufort, pathlib; print(pathlib.Path(beaufort.__file__).parent / 'models/data/digits.onnx')"


def main() -> None:
    """Install and try each distribution that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("distributions", type=Path, nargs="+")
    for distribution in parser.parse_args().distributions:
        with tempfile.TemporaryDirectory() as folder:
            try_distribution(distribution.resolve(), Path(folder))
        print(f"{distribution.name}: all commands work")


def try_distribution(distribution: Path, folder: Path) -> None:
    """Install a distribution into a new environment in a folder, and run the commands in it."""
    venv.create(folder / "env", with_pip=True)
    binaries = folder / "env" / ("Scripts" if os.name == "nt" else "bin")
    work = folder / "work"
    work.mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment["PATH"] = f"{binaries}{os.pathsep}{environment['PATH']}"

    def run(*command: str | Path) -> str:
        done = subprocess.run(
            [str(one) for one in command],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    python = binaries / "python"
    run(python, "-m", "pip", "install", "-q", "-c", ROOT / "constraints-dev.txt", distribution)
    run(python, "-c", _EXAMPLE)
    run("beaufort", "demo", "--output", "demo")
    model = run(python, "-c", _MODEL).strip()
    for store in ("old", "new"):
        evaluated = ("--suite", "mnist-c", "--data", "mnist-test", "--limit", "200", "--store", store)
        run("beaufort", "run", "--model", model, *evaluated)
    run("beaufort", "gate", "--store", "new", "--reference", "old", "--max-drop", "5")
    run("beaufort", "report", "new", "--output", "report.html")
    run("beaufort", "gallery", "--output", "gallery", "--corruption", "weather")
    run(
        "beaufort",
        "corrupt",
        "gallery/gallery.png",
        "corrupted",
        "--corruption",
        "contrast",
        "--severity",
        "1-5",
    )
    run("beaufort", "new", "corruption", "street_dust")
    run(python, "-m", "pip", "install", "-q", "--no-deps", "./street_dust")
    if "street_dust" not in run("beaufort", "ls", "corruptions"):
        sys.exit("the installed plug-in is not listed by `beaufort ls corruptions`")
    versions = run(python, "-m", "pip", "freeze", "--exclude", "beaufort", "--exclude", "street_dust")
    (ROOT / "dist").mkdir(exist_ok=True)
    (ROOT / "dist" / "dependencies.txt").write_text(versions, encoding="utf-8")


if __name__ == "__main__":
    main()
