"""Execute the tutorial notebooks and convert them to pages.

    python tools/notebooks.py docs/tutorials/*.ipynb     # execute, and store the outputs in the notebooks

It supports what the tutorials use: Python, shell lines that start with `!`, and the value of the last line
of a cell as an image, HTML or text. Neither the tests nor the docs build need Jupyter.
"""

from __future__ import annotations

import argparse
import ast
import base64
import contextlib
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


def execute(path: Path) -> dict[str, Any]:
    """Run a notebook in the working directory and return it with its outputs."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__", "_shell": shell}
    code_cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for number, cell in enumerate(code_cells, start=1):
        try:
            printed, value = run_cell("".join(cell["source"]), namespace)
        except Exception as error:
            raise RuntimeError(f"{path.name}, code cell {number}: {type(error).__name__}: {error}") from error
        cell["execution_count"] = number
        cell["outputs"] = list(_outputs(printed, value, number))
    return notebook


def run_cell(text: str, namespace: dict[str, Any]) -> tuple[str, Any]:
    """Return what a cell printed, and the value of its last line if that is an expression."""
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
    """Print the output of a command; exit code 2 (invalid use) is an error, a failing gate is not."""
    ours = re.sub(r"^beaufort\b", lambda _: f'"{sys.executable}" -m beaufort', command)
    done = subprocess.run(
        ours, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    print(done.stdout, end="")
    if done.returncode == 2:
        raise RuntimeError(f"{command}: {done.stdout[-500:]}")


def _outputs(printed: str, value: Any, number: int) -> Iterator[dict[str, Any]]:
    """Yield the outputs of a cell in the notebook format."""
    if printed.strip():
        lines = [f"{line}\n" for line in printed.rstrip().splitlines()]
        yield {"name": "stdout", "output_type": "stream", "text": lines}
    if value is None:
        return
    if png := getattr(value, "_repr_png_", None):
        data = {"image/png": base64.b64encode(png()).decode()}
    elif rich := getattr(value, "_repr_html_", None):
        data = {"text/html": rich()}
    else:
        data = {"text/plain": repr(value)}
    yield {"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"}


def as_page(path: Path) -> str:
    """Return a notebook with its stored outputs as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                parts.append(f"```text\n{''.join(output['text'])}```")
            elif png := output["data"].get("image/png"):
                parts.append(f'<img alt="Output of the cell above" src="data:image/png;base64,{png}">')
            elif rich := output["data"].get("text/html"):
                parts.append(f"<div>{rich}</div>")
            else:
                parts.append(f"```text\n{output['data']['text/plain']}\n```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Execute notebooks in temporary directories and store their outputs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", type=Path, nargs="+")
    for notebook in (path.resolve() for path in parser.parse_args().notebooks):
        with tempfile.TemporaryDirectory(prefix="beaufort-notebook-") as folder, contextlib.chdir(folder):
            executed = execute(notebook)
        notebook.write_text(json.dumps(executed, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # the networks are small
    main()
