"""Draw random messages and documentation sentences, for a review of their wording.

    python tools/sample_texts.py messages --count 100 --seed 1
    python tools/sample_texts.py sentences --count 100 --seed 1

Messages are the texts of exceptions, warnings and printed lines, help texts of the command line and texts of
page templates. Sentences come from the README, docs/ and CONTRIBUTING.md, without code, tables and headings.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_PRINTING = {"echo", "fail", "note", "print", "secho", "warn", "warning"}


def main() -> None:
    """Print a random sample with the place of each text."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("messages", "sentences"))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    texts = list(messages() if options.kind == "messages" else sentences())
    chosen = random.Random(options.seed).sample(texts, min(options.count, len(texts)))
    print(f"{len(chosen)} of {len(texts)} {options.kind}, seed {options.seed}")
    for number, (place, text) in enumerate(chosen, 1):
        print(f"{number:3}. {place}: {text}")


def messages() -> Iterator[tuple[str, str]]:
    """Yield the texts that the package shows at run time."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            for text in _texts_of(node):
                if len(text.split()) > 2:
                    yield f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}", text
    for path in sorted((ROOT / "src").rglob("*.html")):
        visible = re.sub(
            r"<(script|style).*?</\1>|<!--.*?-->", " ", path.read_text(encoding="utf-8"), flags=re.S
        )
        for text in re.split(r"<[^>]*>|\{[%#].*?[%#]\}", visible):
            if len(words := " ".join(text.split())) > 20:
                yield str(path.relative_to(ROOT)), words


def _texts_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
        yield from map(_text, node.exc.args)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _PRINTING:
            yield from map(_text, node.args[:1])
        yield from (_text(keyword.value) for keyword in node.keywords if keyword.arg == "help")


def _text(node: ast.AST) -> str:
    """Return the text of a string literal or f-string, with `{…}` for its fields."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(map(_text, node.values))
    if isinstance(node, ast.FormattedValue):
        return "{" + ast.unparse(node.value) + "}"
    return ""


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the documentation."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for path in pages:
        if path.name == "renames.md" or "api" in path.parts:
            continue
        text = re.sub(r"```.*?```|<!--.*?-->", "", path.read_text(encoding="utf-8"), flags=re.S)
        for paragraph in re.split(r"\n\s*\n|\n(?=[-*] )", text):
            plain = " ".join(paragraph.split())
            if plain.startswith(("#", "|", "![", ">", "<", "---")):
                continue
            for sentence in re.split(r"(?<=[.!?:]) (?=[A-Z`*\[])", plain):
                if len(sentence.split()) > 4:
                    yield str(path.relative_to(ROOT)), sentence


if __name__ == "__main__":
    main()
