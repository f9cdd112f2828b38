"""What the documentation has besides its own pages: the galleries, and the tutorials with their figures.

mkdocs calls `on_pre_build` before it looks for files, so that `mkdocs build` is all that it takes. What is
newer than its source is not made again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
GALLERIES = {"gallery": (), "gallery-mnist": ("--subset", "mnist-c-all")}


def on_pre_build(**_: Any) -> None:
    """Make what is missing or older than its source."""
    for name, options in GALLERIES.items():
        if not (DOCS / "assets" / name / "gallery.html").is_file():
            make_gallery(DOCS / "assets" / name, *options)
    for notebook in NOTEBOOKS:
        page = notebook.with_suffix(".md")
        if not page.is_file() or page.stat().st_mtime < notebook.stat().st_mtime:
            make_page(notebook, page)


def make_gallery(output: Path, *options: str) -> None:
    """Draw a gallery; exit code 1 says that a corruption's file cannot be had here, and the gallery which."""
    command = [sys.executable, "-m", "beaufort", "gallery", "--output", str(output), *options]
    if subprocess.run(command, check=False).returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} failed")


def make_page(notebook: Path, page: Path) -> None:
    """Run a notebook, and write its page. One thread does: its networks are small."""
    command = [sys.executable, str(ROOT / "tools" / "notebooks.py"), str(notebook), "--output", str(page)]
    subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
