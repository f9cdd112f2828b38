"""Exported programs of torch (`.pt2`), checked before they are opened.

`torch.export.load` unpickles parts of the archive and evaluates the expressions of sizes in it. So each
pickle must contain only tensors, each expression must be arithmetic, and each operation one of torch's.
An exported program can still compute anything.
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
_AOT_INDUCTOR = "/data/aotinductor/"
_COMPILED = (_AOT_INDUCTOR, "/data/executorch/")
_OBJECTS = ("custom_obj_", "opaque_obj_")
_OPERATIONS = ("torch.ops.", "_operator.", "math.", "torch.sym_")
_ARITHMETIC = (
    *(ast.Expression, ast.Call, ast.Name, ast.Load, ast.Constant, ast.keyword, ast.BinOp, ast.UnaryOp),
    *(ast.BoolOp, ast.Compare, ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


class Exported(NamedTuple):
    """A program with the preprocessing for its input."""

    module: Any
    preprocessing: Preprocessing
    batch: int | None
    """The only batch size that it accepts; None if any."""


def open_exported(file: Path) -> Exported:
    """Return the program in a file."""
    torch = require("torch", "torch", what="torch models")
    try:
        with zipfile.ZipFile(file) as archive:
            problem = next(_problems(archive, file.stat().st_size), None)
    except Exception as error:  # damaged files raise errors of any class
        raise ModelFileError(f"{file} is not an exported program, or is damaged: {error}") from None
    if problem is not None:
        raise ModelFileError(f"{file} {problem}")
    try:
        program = torch.export.load(file)
        has_guards = "check_guards" in inspect.signature(program.module).parameters
        module = program.module(check_guards=False) if has_guards else program.module()
    except Exception as error:  # damaged files raise errors of any class
        raise ModelFileError(f"torch cannot open {file} as an exported program: {error!s:.300}") from None
    names = program.graph_signature.user_inputs
    inputs = [
        node.meta["val"] for node in program.graph.nodes if node.op == "placeholder" and node.name in names
    ]
    shapes = [tuple(getattr(value, "shape", ())) for value in inputs]
    sides: list[Any] = [side if isinstance(side, int) else None for shape in shapes for side in shape]
    if len(shapes) != 1 or len(sides) != 4 or sides[1] not in (1, 3):
        raise ModelError(f"{file} must have one input of shape (n, 1 or 3, h, w), got {shapes}")
    batch, channels, height, width = sides
    size = None if height is None or width is None else (height, width)
    resize = None if size is None else size[0] if size[0] == size[1] else size
    return Exported(module, Preprocessing(size=size, resize=resize, channels=channels), batch)


def is_compiled(file: Path) -> bool:
    """Whether a file is a package of AOTInductor; false for damaged files."""
    try:
        with zipfile.ZipFile(file) as archive:
            return any(_AOT_INDUCTOR in f"/{name}" for name in archive.namelist())
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


def open_compiled(file: Path) -> tuple[Any, str]:
    """Return the function in a package of AOTInductor, and the kind of device that it was compiled for.

    This runs native code from the file.
    """
    torch = require("torch", "torch", what="torch models")
    try:
        package = torch._inductor.aoti_load_package(str(file))
    except Exception as error:  # damaged files raise errors of any class
        raise ModelFileError(
            f"torch cannot open {file} as a package of AOTInductor: {error!s:.300}"
        ) from None
    return package, str(package.get_metadata()["AOTI_DEVICE_KEY"])


def _problems(archive: zipfile.ZipFile, size: int) -> Iterator[str]:
    """Yield what makes an archive unsafe to open."""
    names = archive.namelist()
    if len(set(names)) != len(names):
        yield "contains two parts of the same name"
    if sum(part.file_size for part in archive.infolist()) > 2 * size + _SLACK:
        yield "is compressed, which torch never does"
    for name in names:
        if any(folder in f"/{name}" for folder in _COMPILED) or Path(name).name.startswith(_OBJECTS):
            yield f"contains compiled code or objects ({name}); only plain programs are supported"
        pickles = [name] if name.endswith(".pt") else []
        if name.endswith(".json"):
            content = json.loads(archive.read(name))
            if name.endswith("_config.json"):
                folder = name.rpartition("/")[0]
                entries = content["config"].values()
                pickles = [f"{folder}/{entry['path_name']}" for entry in entries if entry.get("use_pickle")]
            for expression in _values(content, "expr_str"):
                if not _is_arithmetic(expression):
                    yield f"describes a size as {expression!r:.80}, which is not arithmetic"
            for nodes in _values(content, "nodes"):
                for target in (node["target"] for node in nodes):
                    if not target.startswith(_OPERATIONS):
                        yield f"calls {target!r:.80}; only operations of torch are allowed"
        for pickled in pickles:
            if error := _pickle_error(archive.read(pickled)):
                yield f"contains more than tensors in {pickled}, which could run arbitrary code: {error}"


def _pickle_error(content: bytes) -> str:
    torch = require("torch", "torch", what="torch models")
    try:
        if content:
            torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:  # damaged files raise errors of any class
        return f"{str(error) or type(error).__name__:.80}"
    return ""


def _is_arithmetic(text: Any) -> bool:
    try:
        tree = ast.parse(text, mode="eval") if len(text) <= _LONGEST_EXPRESSION else None
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        return False
    return tree is not None and all(map(_is_allowed, ast.walk(tree)))


def _is_allowed(node: ast.AST) -> bool:
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id[:1].isupper()
    if isinstance(node, ast.Name):
        return not node.id.startswith("_")
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value.isidentifier() and not node.value.startswith("_")
    return isinstance(node, _ARITHMETIC)


def _values(content: Any, key: str) -> Iterator[Any]:
    """Yield every value under a key, at any depth."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name == key:
                yield value
            yield from _values(value, key)
    elif isinstance(content, list):
        for value in content:
            yield from _values(value, key)
