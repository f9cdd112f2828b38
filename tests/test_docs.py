"""The documentation is true: its Python blocks run as written, and its links lead somewhere."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from beaufort.corruptions import corruptions

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
ALL_PAGES = [*PAGES, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
GENERATED = ("docs/assets/gallery/", "docs/assets/gallery-mnist/")
"""Folders that the docs build fills."""

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")


class Block(NamedTuple):
    """Code between two fences, and the line of the page on which it starts."""

    line: int
    code: str


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str = "python") -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        if match[1] == language:
            yield Block(text.count("\n", 0, match.start(2)) + 1, match[2])


def needs_torch(block: Block) -> bool:
    return re.search(r"^\s*(?:import|from) torch", block.code, re.MULTILINE) is not None


def run(page: Path, block: Block, namespace: dict[str, Any]) -> None:
    """Run a block as if it stood in a file of the page's name, on the page's lines."""
    file = name(page)
    try:
        exec(compile("\n" * (block.line - 1) + block.code, file, "exec", dont_inherit=True), namespace)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        at = error.lineno if isinstance(error, SyntaxError) else lines[-1]
        raise AssertionError(f"{file}:{at}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))], ids=name)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(corruptions, "_things", dict(corruptions))  # what a page registers goes with it
    module = types.ModuleType("page")  # type hints are looked up in the module that they stand in
    monkeypatch.setitem(sys.modules, "page", module)
    torch = importlib.util.find_spec("torch") is not None
    for block in blocks(page):
        if torch or not needs_torch(block):
            run(page, block, vars(module))


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        found = (page.parent / target.partition("#")[0]).resolve()
        inside = found.relative_to(ROOT).as_posix()
        assert found.is_file() or inside.startswith(GENERATED), f"{name(page)} links to {target}"


def test_every_corruption_is_in_the_table() -> None:
    text = (ROOT / "docs/corruptions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (yes|no) \| (\w+) \|", text, re.MULTILINE)
    scales = {5: "all", 1: "mnist"}
    assert {row[0]: row[1:] for row in rows} == {
        one.name: (one.group, "yes" if one.random else "no", scales[len(one.recipes)])
        for one in corruptions.values()
    }
