"""Run a notebook and write it down as a page: text, code, what it printed and its figures.

A few lines take the place of Jupyter here, so that the tests and the documentation need nothing installed for
it. They know what the notebooks of `docs/tutorials` use: Python, lines that begin with `!` for the shell, and
the value of a cell's last line, shown as a picture, HTML or text. Everything else is left to Jupyter, in
which the notebooks run as they are.

    python tools/notebooks.py docs/tutorials/training-loop.ipynb --output page.md
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
import html
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SHELL = re.compile(r"^!(.+)$", re.MULTILINE)
_WIDEST_LINE = 160


def cells_of(path: Path) -> Iterator[tuple[str, str]]:
    """The kind and the text of every cell."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        yield cell["cell_type"], "".join(cell["source"])


def as_page(path: Path) -> str:
    """Run the notebook in the working folder, and give its page as Markdown."""
    namespace: dict[str, Any] = {"__name__": "__main__", "_shell": shell}
    parts = []
    for number, (kind, text) in enumerate(cells_of(path), start=1):
        if kind != "code":
            parts.append(text)
            continue
        try:
            printed, shown = run_cell(text, namespace)
        except Exception as error:
            raise RuntimeError(f"{path.name}, cell {number}: {type(error).__name__}: {error}") from error
        parts += [f"```python\n{text}\n```", *_output(printed, shown)]
    return "\n\n".join(parts) + "\n"


def run_cell(text: str, namespace: dict[str, Any]) -> tuple[str, Any]:
    """What a cell printed, and the value of its last line if that is an expression."""
    tree = ast.parse(SHELL.sub(lambda match: f"_shell({match[1]!r})", text))
    last = tree.body[-1] if tree.body else None
    value = None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        if isinstance(last, ast.Expr):
            exec(compile(ast.Module(tree.body[:-1], []), "<cell>", "exec"), namespace)
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), namespace)
        else:
            exec(compile(tree, "<cell>", "exec"), namespace)
    return printed.getvalue(), value


def shell(command: str) -> None:
    """Print what a command prints; as in Jupyter, its exit code is not an error."""
    ours = re.sub(r"^beaufort\b", lambda _: f'"{sys.executable}" -m beaufort', command)
    done = subprocess.run(
        ours, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    print(done.stdout, end="")


def _output(printed: str, shown: Any) -> Iterator[str]:
    if printed.strip():
        lines = [line[:_WIDEST_LINE] for line in printed.rstrip().splitlines()]
        yield "```text\n" + "\n".join(lines) + "\n```"
    if shown is None:
        return
    if picture := getattr(shown, "_repr_png_", None):
        data = base64.b64encode(picture()).decode()
        yield f'<img alt="What the cell above shows" src="data:image/png;base64,{data}">'
    elif rich := getattr(shown, "_repr_html_", None):
        yield f"<div>{rich()}</div>"
    else:
        yield f"<pre>{html.escape(repr(shown))}</pre>"


def main() -> None:
    """Run the notebook that the command line names, in a folder that is deleted afterwards."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("--output", type=Path, required=True, help="a Markdown file")
    options = parser.parse_args()
    notebook, output = options.notebook.resolve(), options.output.resolve()
    with tempfile.TemporaryDirectory(prefix="beaufort-notebook-") as folder:
        os.chdir(folder)
        page = as_page(notebook)
        os.chdir(output.parent)
    output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
