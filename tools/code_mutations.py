"""Change one operator or number of a module at a time, and report which changes the tests detect.

    python tools/code_mutations.py src/beaufort/metrics/corruption.py tests/metrics/test_corruption.py

Mutants are drawn with a seed. The module is restored at the end; `mutations.py` does the same for the
constants of corruptions.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


def main() -> None:
    """Run the tests on each mutant and print the undetected ones."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("module", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--number", type=int, default=20, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=600, help="seconds; a mutant that hangs is detected")
    options = parser.parse_args()
    original = options.module.read_text(encoding="utf-8")
    if not passes(options.tests, options.timeout):
        sys.exit("the tests fail without a change")
    every = list(mutants(original))
    chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    detected = 0
    try:
        for change, text in chosen:
            options.module.write_text(text, encoding="utf-8")
            if passes(options.tests, options.timeout):
                print(f"undetected: {options.module}:{change}", flush=True)
            else:
                detected += 1
    finally:
        options.module.write_text(original, encoding="utf-8")
    print(f"{options.module}: {detected} of {len(chosen)} mutants detected, of {len(every)} possible ones")


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Yield a description and the changed source of every mutant."""
    tree = ast.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        for change, mutant in _changed(node):
            whole = copy.deepcopy(tree)
            place = list(ast.walk(whole))[number]
            for name, value in ast.iter_fields(mutant):
                setattr(place, name, value)
            yield f"{getattr(node, 'lineno', 0)}: {change}", ast.unparse(ast.fix_missing_locations(whole))


def _changed(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    mutant: ast.AST | None = None
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp | ast.Compare):
        mutant = copy.deepcopy(node)
        place: Any = mutant
        if isinstance(mutant, ast.Compare):
            swapped = _SWAPS.get(type(mutant.ops[0]))
            place.ops[:1] = [swapped()] if swapped else []
        else:
            swapped = _SWAPS.get(type(mutant.op))
            place.op = swapped() if swapped else mutant.op
        mutant = mutant if swapped else None
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        mutant = ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        mutant = ast.Constant(node.value + 1)
    if mutant is not None:
        yield f"{ast.unparse(node)} → {ast.unparse(mutant)}", mutant


def passes(tests: list[str], timeout: float) -> bool:
    """Return whether the tests pass."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:xdist", "-p", "no:cacheprovider"]
    # bytecode is named after the second of a change, and mutants follow each other faster
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [*command, "-m", "not nightly", *tests],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    main()
