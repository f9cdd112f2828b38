"""Facts that do not depend on prose: numbers, names, and digests of pixels and tables."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

LONGEST = 12
"""Lists with more values than this are recorded as their number, their ends and a digest."""

VOLATILE = re.compile(
    r"(^|_)(seconds|time|times|date|elapsed|host|hostname|duration|created|made_at|user|pid|python|platform"
    r"|versions|packages|beaufort|beaufort_version|command|argv|eta|speed|per_second|cpus|cores|machine|processor|checksum|seal|git)$"
)
"""Keys whose values differ from run to run or from machine to machine."""

WORD = re.compile(r"[^\s]{1,120}")
"""A string that is a name; others are prose."""


def short(digest: bytes | str) -> str:
    """Return the first 16 digits of the SHA-256 of some bytes."""
    data = digest.encode() if isinstance(digest, str) else digest
    return hashlib.sha256(data).hexdigest()[:16]


def array_digest(values: Any) -> str:
    """Return the kind, the shape and the digest of an array."""
    array = np.ascontiguousarray(values)
    shape = "x".join(map(str, array.shape))
    return f"{array.dtype}[{shape}] {short(array.tobytes())}"


def rounded(value: float, digits: int = 9) -> float | str:
    """Return a number with so many digits that other libraries of arithmetic give the same."""
    if not math.isfinite(value):
        return str(value)
    made = float(f"{value:.{digits}g}")
    return 0.0 if abs(made) < 1e-12 else made


def plain(value: Any, digits: int = 9) -> Any:
    """Return a value as JSON has it; arrays of floats as their mean and spread, other arrays by digest."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return rounded(float(value), digits)
    if isinstance(value, np.bool_):
        return bool(value)
    if type(value).__module__.startswith("torch") and hasattr(value, "detach"):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        return _plain_array(value, digits)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            one.name: plain(getattr(value, one.name), digits)
            for one in dataclasses.fields(value)
            if not one.name.startswith("_")
        }
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): plain(inner, digits) for key, inner in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    if isinstance(value, list | tuple | range):
        return [plain(inner, digits) for inner in value]
    return str(value)


def _plain_array(value: Any, digits: int) -> Any:
    if value.dtype.kind in "biu" or value.dtype.kind in "US":
        return array_digest(value)
    if value.size <= LONGEST:
        return plain(value.tolist(), digits)
    flat = value.astype(np.float64).ravel()
    weighted = float(flat @ np.linspace(1, 2, flat.size))
    shape = "x".join(map(str, value.shape))
    return {
        f"{value.dtype}[{shape}]": [rounded(float(flat.sum()), min(digits, 6)), rounded(weighted, 6)],
    }


def flat(value: Any, work: str = "", digits: int = 9) -> dict[str, Any]:
    """Return the facts of a JSON value, by their path; elements of lists share one path.

    Strings with spaces are prose and left out, and so is what differs from run to run.
    """
    found: dict[str, list[Any]] = {}
    for path, inner in _walk(plain(value, digits), ""):
        if isinstance(inner, str):
            inner = inner.replace(work, "WORK") if work else inner
            if not WORD.fullmatch(inner) and not _is_digest(inner):
                continue
        found.setdefault(path, []).append(inner)
    return {path: compact(values) for path, values in sorted(found.items())}


def _is_digest(text: str) -> bool:
    return re.fullmatch(r"\w+\[[\dx]*\] [0-9a-f]{16}", text) is not None


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if not VOLATILE.search(key):
                yield from _walk(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        if not value or isinstance(value[0], dict | list):
            yield f"{path}#", len(value)
        for inner in value:
            yield from _walk(inner, f"{path}[]")
    else:
        yield path, value


def compact(values: list[Any]) -> Any:
    """Return one value as itself, few or equal ones as a list, many as their number, ends and digest."""
    if len(values) == 1:
        return values[0]
    if len(values) <= LONGEST:
        return values
    if all(value == values[0] for value in values):
        return f"{len(values)} values {values[0]}"
    text = json.dumps(values)
    return f"{len(values)} values {values[0]} … {values[-1]} {short(text)}"


def numbers(text: str) -> list[float | str]:
    """Return the numbers of a text, in order."""
    found = re.findall(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w.]*\w)", text)
    return [rounded(float(one.replace("−", "-").replace(",", ""))) for one in found]


def table_numbers(text: str) -> Any:
    """Return the numbers of the tables of a text in Markdown or LaTeX."""
    rows = [line for line in text.splitlines() if line.startswith("|") or "&" in line]
    return compact(numbers("\n".join(rows)))


def csv_facts(text: str, work: str = "") -> dict[str, Any]:
    """Return the columns of a CSV text: numbers as numbers, names as names."""
    rows = list(csv.reader(io.StringIO(text)))
    if not rows:
        return {"rows": 0}
    columns: dict[str, list[Any]] = {name: [] for name in rows[0]}
    for row in rows[1:]:
        for name, cell in zip(rows[0], row, strict=False):
            columns[name].append(_cell(cell))
    return {"rows": len(rows) - 1, **flat(columns, work)}


def _cell(text: str) -> Any:
    try:
        return rounded(float(text))
    except ValueError:
        return text


def file_facts(path: Path, work: str = "") -> Any:
    """Return what a file holds, in a form that does not depend on its encoding or its prose."""
    suffix = path.suffix.lower()
    reader = _READERS.get(suffix)
    if reader is None:
        return "file"
    return reader(path, work)


def _image(path: Path, work: str) -> Any:
    from PIL import Image

    with Image.open(path) as image:
        return f"{image.mode} {array_digest(np.asarray(image))}"


def _npy(path: Path, work: str) -> Any:
    return array_digest(np.load(path))


def _npz(path: Path, work: str) -> Any:
    with np.load(path) as arrays:
        return {name: array_digest(arrays[name]) for name in sorted(arrays)}


def _json(path: Path, work: str) -> Any:
    return flat(json.loads(path.read_text(encoding="utf-8")), work)


def _json_lines(path: Path, work: str) -> Any:
    lines = path.read_text(encoding="utf-8").splitlines()
    return flat([json.loads(line) for line in lines if line.strip()], work)


def _csv(path: Path, work: str) -> Any:
    return csv_facts(path.read_text(encoding="utf-8"), work)


def _text(path: Path, work: str) -> Any:
    return table_numbers(path.read_text(encoding="utf-8"))


def _html(path: Path, work: str) -> Any:
    """The data that are embedded in a page."""
    text = path.read_text(encoding="utf-8")
    found = re.findall(r"<script[^>]*application/json[^>]*>(.*?)</script>", text, re.DOTALL)
    tables = len(re.findall(r"<table", text))
    return {"kind": "page", "data": len(found), "tables": tables > 0}


def _parquet(path: Path, work: str) -> Any:
    import pyarrow.parquet as pq

    table = pq.ParquetFile(path).read()
    sums, exact = {}, {}
    for field in table.schema:
        values = table.column(field.name).to_pylist()
        if "float" in str(field.type) or "double" in str(field.type):
            sums[field.name] = rounded(float(np.nansum(_numbers_in(values))), 5)
        else:
            exact[field.name] = values
    names = [f"{field.name}:{field.type}" for field in table.schema]
    return {
        "rows": table.num_rows,
        "columns": short(json.dumps(names)),
        "values": short(json.dumps(exact, default=str)),
        "sums": sums,
        "cell": _cell_of(table.schema.metadata or {}),
    }


def _numbers_in(values: list[Any]) -> list[float]:
    found: list[float] = []
    for value in values:
        found += _numbers_in(value) if isinstance(value, list) else [] if value is None else [value]
    return found


_RECORDED_FORMAT = b"2"
"""Number of the format of prediction files when facts were recorded."""


def _cell_of(metadata: Mapping[bytes, bytes]) -> str:
    """Return a digest of the cell in a file of predictions, as if it had the recorded format."""
    about = [
        _RECORDED_FORMAT if key.endswith(b".format") else value
        for key, value in sorted(metadata.items())
        if key.endswith((b".cell", b".format", b".start"))
    ]
    return short(b"".join(about))


def _safetensors(path: Path, work: str) -> Any:
    from safetensors.numpy import load_file

    return {name: plain(value, 4) for name, value in sorted(load_file(path).items())}


def _zip(path: Path, work: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        return sorted(archive.namelist())


_READERS = {
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif"), _image),
    ".npy": _npy,
    ".npz": _npz,
    ".json": _json,
    ".jsonl": _json_lines,
    ".csv": _csv,
    ".html": _html,
    ".md": _text,
    ".tex": _text,
    ".parquet": _parquet,
    ".safetensors": _safetensors,
    ".zip": _zip,
}
