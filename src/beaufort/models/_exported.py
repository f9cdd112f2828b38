"""Exported programs of torch (`.pt2`), opened after a look inside.

`torch.export.load` unpickles parts of the archive and evaluates the expressions of sizes in it. So each
pickle must hold tensors only, each expression must be arithmetic, and each operation one of torch's.
What an exported program computes is still up to whoever made it.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.optional import require
from beaufort.models.preprocessing import Preprocessing
from beaufort.models.spec import ModelError, ModelFileError

_SLACK = 1 << 24
_LONGEST_EXPRESSION = 10_000
_COMPILED = ("/data/aotinductor/", "/data/executorch/")
_OBJECTS = ("custom_obj_", "opaque_obj_")
_OPERATIONS = ("torch.ops.", "_operator.", "math.", "torch.sym_")
_ARITHMETIC = (
    *(ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword, ast.BinOp, ast.UnaryOp),
    *(ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


class Exported(NamedTuple):
    """A program and what its input tells."""

    module: Any
    preprocessing: Preprocessing
    batch: int | None
    """The only number of images that it takes at once; None if any."""


def open_exported(file: Path) -> Exported:
    """The program in a file."""
    torch = require("torch", "torch", what="torch models")
    _look_inside(file)
    try:
        program = torch.export.load(file)
        has_guards = "check_guards" in inspect.signature(program.module).parameters
        module = program.module(check_guards=False) if has_guards else program.module()
    except Exception as error:  # the archive comes from anyone
        raise ModelFileError(f"torch cannot open {file} as an exported program: {error!s:.300}") from None
    return Exported(module, *_input(program, file))


def _input(program: Any, file: Path) -> tuple[Preprocessing, int | None]:
    wanted = program.graph_signature.user_inputs
    found = [
        node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name in wanted
    ]
    shapes = [tuple(getattr(value, "shape", ())) for value in found]
    sides = [side if isinstance(side, int) else None for shape in shapes for side in shape]
    if len(shapes) != 1 or len(sides) != 4 or sides[1] not in (1, 3):
        raise ModelError(f"{file} must have one input of shape (n, 1 or 3, h, w), got {shapes}")
    height, width = sides[2:]
    size = None if height is None or width is None else (height, width)
    resize = None if size is None else size[0] if size[0] == size[1] else size
    return Preprocessing(size=size, resize=resize, channels=sides[1]), sides[0]


def _look_inside(file: Path) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if len(set(names)) != len(names):
                raise ModelFileError(f"{file} must not hold two parts of the same name")
            if sum(part.file_size for part in archive.infolist()) > 2 * file.stat().st_size + _SLACK:
                raise ModelFileError(f"{file} must not be compressed: torch stores its parts as they are")
            for name in names:
                _check_part(archive, name, file)
    except ModelFileError:
        raise
    except Exception as error:  # the archive comes from anyone
        raise ModelFileError(f"{file} is not an exported program, or is damaged ({error})") from None


def _check_part(archive: zipfile.ZipFile, name: str, file: Path) -> None:
    if any(folder in f"/{name}" for folder in _COMPILED) or Path(name).name.startswith(_OBJECTS):
        raise ModelFileError(f"{file} must be a plain program, got compiled code or objects ({name})")
    if name.endswith(".pt"):
        _check_pickle(archive.read(name), name, file)
    elif name.endswith(".json"):
        content = json.loads(archive.read(name))
        if name.endswith("_config.json"):
            for entry in content["config"].values():
                if entry.get("use_pickle"):
                    beside = f"{name.rpartition('/')[0]}/{entry['path_name']}"
                    _check_pickle(archive.read(beside), beside, file)
        for expression in _values(content, "expr_str"):
            _check_expression(expression, file)
        for target in (node["target"] for nodes in _values(content, "nodes") for node in nodes):
            if not target.startswith(_OPERATIONS):
                raise ModelFileError(f"{file} must call only operations of torch, got {target!r:.80}")


def _check_pickle(content: bytes, name: str, file: Path) -> None:
    torch = require("torch", "torch", what="torch models")
    if not content:
        return
    try:
        torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # bytes of anyone's may raise anything
        raise ModelFileError(
            f"{file} must hold only tensors in its part {name}: unpickling anything else could run "
            f"arbitrary code ({error!s:.80})"
        ) from None


def _check_expression(text: Any, file: Path) -> None:
    refused = ModelFileError(f"{file} describes a size as {text!r:.80}, which is not arithmetic")
    try:
        if len(text) > _LONGEST_EXPRESSION:
            raise refused
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        raise refused from None
    for node in ast.walk(tree):
        plain = isinstance(node, _ARITHMETIC)
        if isinstance(node, ast.Call):
            plain = isinstance(node.func, ast.Name) and node.func.id[:1].isupper()
        elif isinstance(node, ast.Name):
            plain = not node.id.startswith("_")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            plain = node.value.isidentifier() and not node.value.startswith("_")
        if not plain:
            raise refused


def _values(content: Any, key: str) -> Iterator[Any]:
    """Every value under a key, however deep."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name == key:
                yield value
            yield from _values(value, key)
    elif isinstance(content, list):
        for value in content:
            yield from _values(value, key)
