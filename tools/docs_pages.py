"""Generate the parts of the documentation that are made by code: reference, galleries and tutorials.

    python tools/docs_pages.py

`make docs` runs this before it builds the site. Existing galleries are kept; `make clean` removes them.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import command_pages
from notebooks import as_page

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
GALLERIES = {"gallery": (), "gallery-mnist": ("--corruption", "mnist-c-all")}

API = (
    "beaufort",
    *("beaufort.corruptions", "beaufort.corruptions.rng", "beaufort.corruptions.sequences"),
    *("beaufort.data", "beaufort.data.images", "beaufort.data.labels", "beaufort.data.protocols"),
    *("beaufort.data.writers", "beaufort.models"),
    *("beaufort.suites", "beaufort.suites.attacks", "beaufort.suites.conditions", "beaufort.suites.shifts"),
    *("beaufort.evaluation", "beaufort.store", "beaufort.results", "beaufort.report"),
    *("beaufort.metrics", "beaufort.metrics.stats", "beaufort.metrics.torch"),
    *("beaufort.testbed", "beaufort.training", "beaufort.training.transforms"),
    *("beaufort.mining", "beaufort.mining.review"),
    *("beaufort.studies.leave_out", "beaufort.studies.demo"),
    *("beaufort.compat.albumentations", "beaufort.compat.imagecorruptions", "beaufort.compat.kornia"),
    *("beaufort.compat.lightning", "beaufort.testing"),
)
"""Public modules, in the order of the navigation. Other modules may change without notice."""


def write_api_pages(docs: Path = DOCS) -> None:
    """Write one page for each public module; mkdocstrings fills it with the docstrings."""
    folder = docs / "reference" / "api"
    folder.mkdir(parents=True, exist_ok=True)
    for module in API:
        (folder / f"{module}.md").write_text(f"# `{module}`\n\n::: {module}\n", encoding="utf-8")


def write_command_pages(docs: Path = DOCS) -> None:
    """Write the reference of the command line."""
    folder = docs / "reference" / "command-line"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in command_pages.pages().items():
        (folder / name).write_text(text, encoding="utf-8")


def write_tutorials(docs: Path = DOCS) -> None:
    """Convert the notebooks with their stored outputs to pages."""
    for notebook in NOTEBOOKS:
        page = docs / "tutorials" / f"{notebook.stem}.md"
        page.write_text(as_page(notebook), encoding="utf-8")


def draw_galleries() -> None:
    """Draw the galleries that are missing.

    Exit code 1 of the command means that a file of a corruption is not available; the gallery names it.
    """
    for name, options in GALLERIES.items():
        output = DOCS / "assets" / name
        if not (output / "gallery.html").is_file():
            command = [sys.executable, "-m", "beaufort", "gallery", "--output", str(output), *options]
            if subprocess.run(command, check=False).returncode not in (0, 1):
                raise SystemExit(f"{' '.join(command)} failed")


if __name__ == "__main__":
    write_api_pages()
    write_command_pages()
    write_tutorials()
    draw_galleries()
