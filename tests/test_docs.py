"""The documentation is true: its Python blocks run as written, and its links lead somewhere."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import subprocess
import sys
import traceback
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import command_pages
import pytest
import typer
import yaml
from docs_pages import API, write_api_pages, write_command_pages, write_tutorials
from notebooks import as_page, execute
from typer.testing import CliRunner

from beaufort._core.errors import AssetError
from beaufort._core.optional import require
from beaufort.cli import app
from beaufort.corruptions import corruptions
from beaufort.data import load_dataset, readers
from beaufort.metrics import metrics
from beaufort.suites import registered_suites
from beaufort.suites.shifts import shifts

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    *sorted(
        page
        for page in (ROOT / "docs").rglob("*.md")
        if page.parent.name not in ("tutorials", "api", "command-line")
    ),
]
RESULTS = sorted((ROOT / "results").rglob("*.md"))
ALL_PAGES = [*PAGES, *RESULTS, ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"]
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
GENERATED = (
    *("docs/assets/gallery/", "docs/assets/gallery-mnist/", "docs/reference/api/"),
    "docs/reference/command-line/",
    *(path.with_suffix(".md").relative_to(ROOT).as_posix() for path in NOTEBOOKS),
)
"""What the docs build makes."""

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


OPTIONAL = ("albumentations", "datasets", "open_clip", "timm", "torch", "torchvision", "transformers")
"""Packages that the core does without: blocks that import them run where they are installed."""


def can_run(block: Block) -> bool:
    imported = re.findall(r"^\s*(?:import|from) (\w+)", block.code, re.MULTILINE)
    for package in {"open_clip", "timm", "torchvision", "transformers"}.intersection(imported):
        if importlib.util.find_spec(package):
            require(package, package, what="this page")  # also if torchvision does not fit torch
    return all(importlib.util.find_spec(package) for package in imported if package in OPTIONAL)


def run(page: Path, block: Block, namespace: dict[str, Any]) -> None:
    """Run a block as if it were in a file with the page's name, on the page's lines."""
    file = name(page)
    try:
        exec(compile("\n" * (block.line - 1) + block.code, file, "exec", dont_inherit=True), namespace)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.lineno for frame in frames if frame.filename == file]
        at = error.lineno if isinstance(error, SyntaxError) else lines[-1]
        raise AssertionError(f"{file}:{at}: {type(error).__name__}: {error}") from error


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))], ids=name)
def test_python_blocks_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for registry in (
        corruptions,
        readers,
        registered_suites,
        shifts,
        metrics,
    ):  # what a page registers goes with it
        monkeypatch.setattr(registry, "_things", dict(registry))
    module = types.ModuleType("page")  # type hints are looked up in the module that they stand in
    monkeypatch.setitem(sys.modules, "page", module)
    monkeypatch.setenv("NO_ALBUMENTATIONS_UPDATE", "1")  # it would ask the network for its newest version
    for block in filter(can_run, blocks(page)):
        run(page, block, vars(module))
    if name(page) in ("README.md", "docs/index.md"):
        printed = capsys.readouterr().out
        assert all(text.code in printed for text in blocks(page, "text"))


def test_the_command_output_in_the_readme_is_real(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        load_dataset("mnist-test")
    except AssetError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    consoles = [block.code for block in blocks(ROOT / "README.md", "console")]
    command, _, output = next(code for code in consoles if "demo:digits" in code).partition("\n")
    assert CliRunner().invoke(app, shlex.split(command)[2:]).stdout.startswith(output)


@pytest.mark.parametrize("page", [page for page in PAGES if any(blocks(page))], ids=name)
def test_imported_names_are_in_the_reference(page: Path) -> None:
    """Modules that are not there may change without notice; a page does not teach them."""
    imports = re.compile(r"^(?:from|import) (beaufort[\w.]*)(?: import (.*))?", re.MULTILINE)
    for block in blocks(page):
        for module, names in imports.findall(block.code):
            inner = {f"{module}.{one.strip()}" for one in names.split(",")}
            assert module in API or inner <= set(API), f"{name(page)} imports {module}"


@pytest.mark.parametrize("page", ALL_PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target) or target.startswith("#"):
            continue
        found = (page.parent / target.partition("#")[0]).resolve()
        inside = found.relative_to(ROOT).as_posix()
        assert found.is_file() or inside.startswith(GENERATED), f"{name(page)} links to {target}"


def nav_pages(part: Any) -> Iterator[str]:
    """The files of a navigation, whatever its sections."""
    if isinstance(part, str):
        yield part
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        yield from nav_pages(inner)


def test_every_page_is_in_the_navigation_once() -> None:
    listed = list(nav_pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    docs = ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in PAGES if path.is_relative_to(docs)}
    generated = {path.with_suffix(".md").relative_to(docs).as_posix() for path in NOTEBOOKS}
    generated |= {f"reference/api/{module}.md" for module in API}
    generated |= {f"reference/command-line/{page}.md" for page in ("index", *command_pages.GROUPS)}
    assert sorted(listed) == sorted(pages | generated)


CONSOLE = re.compile(r"^\$ beaufort (.+?)(?:\s+#.*)?$", re.MULTILINE)


@cache
def program() -> Any:
    return typer.main.get_command(app)


def parse(words: list[str]) -> None:
    """Parse a command line as the program does, without running it; errors are raised."""
    command = program()
    context, title = None, "beaufort"
    while True:
        context = command.make_context(title, list(words), parent=context)
        if not hasattr(command, "resolve_command"):
            return
        title, command, words = command.resolve_command(context, [*context._protected_args, *context.args])


@pytest.mark.parametrize("page", [*PAGES, *RESULTS], ids=name)
def test_commands_are_taken_as_written(page: Path) -> None:
    """Every `beaufort …` of a console block has a command and options that there are."""
    for block in blocks(page, "console"):
        for line in CONSOLE.findall(block.code.replace("\\\n", " ")):
            command = re.split(r"\s(?:\|\||&&|\||>)\s", line)[0]
            words = [word for word in shlex.split(command) if word not in ("…", "...")]
            try:
                parse(words)
            except typer.Exit:  # --version, --help
                continue
            except Exception as error:
                why = getattr(error, "format_message", error.__str__)()
                pytest.fail(f"{name(page)}: beaufort {line}: {type(error).__name__}: {why}")


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Every command that does something, by its words, with its help."""
    if not hasattr(command, "list_commands"):
        yield " ".join(words), command.help or ""
        return
    context = typer.Context(command)
    for title in command.list_commands(context):
        yield from commands(command.get_command(context, title), (*words, title))


@pytest.mark.parametrize(("command", "text"), list(commands(program())), ids=lambda part: part[:20])
def test_help_teaches_with_an_example(command: str, text: str) -> None:
    """Every help has a command line of its command, and it is taken as written."""
    examples = re.findall(rf"`beaufort ({command}\b[^`]*)`", text)
    for line in examples:
        parse([word for word in shlex.split(line) if word not in ("…", "...")])
    assert examples


@pytest.mark.parametrize(
    "line", ["run --modell x --suite s --data d", "frobnicate", "ls suites --nope", "compare"]
)
def test_a_wrong_command_is_found(line: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|missing"):
        parse(line.split())


def test_results_cite_what_is_in_the_repository() -> None:
    """Tables, pages, figures and programs that the pages of `results/` name are there."""
    for page in RESULTS:
        text = FENCE.sub("", page.read_text(encoding="utf-8"))
        text = text.replace("`labels.csv`", "")  # in the folder of the photos, which cannot be passed on
        for cited in re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:csv|json|html|md|py|svg|yaml))`", text):
            places = (page.parent / cited, ROOT / cited, ROOT / "results" / cited)
            assert any(place.is_file() for place in places), f"{name(page)} cites {cited}"


def run_nightly(notebook: Path) -> Any:
    """The notebook of a gate runs at night; the test of the gate action runs the same commands."""
    marks = pytest.mark.nightly if notebook.stem == "onnx-gate" else ()
    return pytest.param(notebook, marks=marks, id=notebook.stem)


@pytest.mark.slow
@pytest.mark.parametrize("notebook", [run_nightly(path) for path in NOTEBOOKS])
def test_notebooks_run(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("onnx", reason="onnx is not installed")
    try:
        load_dataset("mnist-test")
    except AssetError as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    copy = tmp_path / "executed.ipynb"
    copy.write_text(json.dumps(execute(notebook)))
    page = as_page(copy)
    assert "data:image/png;base64," in page  # a figure
    assert "beaufort:" not in page  # the start of an error message of a command


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_contain_their_outputs(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    counts = [cell["execution_count"] for cell in cells if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert "data:image/png;base64," in as_page(notebook)


@pytest.mark.slow
@pytest.mark.parametrize("api", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_the_site_is_built(tmp_path: Path, api: bool) -> None:
    """Build everything except the galleries, which take long to draw; with the API reference at night."""
    for module in ("zensical", "mkdocstrings"):
        pytest.importorskip(module, reason=f"{module} is not installed; the extra docs has it")
    copied = tmp_path / "docs"
    shutil.copytree(ROOT / "docs", copied, ignore=shutil.ignore_patterns("gallery", "gallery-mnist"))
    for folder in ("gallery", "gallery-mnist"):
        (copied / "assets" / folder).mkdir()
        for file in ("gallery.html", "gallery.png"):
            (copied / "assets" / folder / file).touch()
    write_api_pages(copied)
    for page in (copied / "reference" / "api").glob("*.md") if not api else ():
        page.write_text(page.read_text(encoding="utf-8").replace(":::", "Module"), encoding="utf-8")
    write_command_pages(copied)
    write_tutorials(copied)
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    settings = settings.replace("paths: [src]", f"paths: [{ROOT / 'src'}]")
    settings = settings.replace("- tools/", f"- {ROOT / 'tools'}/")
    (tmp_path / "mkdocs.yml").write_text(settings)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert "Evaluate a model" in (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
