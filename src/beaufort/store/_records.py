"""Records of runs: the suite, dataset, seed and models of each, as JSON files.

The file name is the digest of these facts, so that a repeated run replaces its record. `checksum` is the
digest of all other keys. Records of format 1 lack it; their names are compared with their facts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from beaufort.store._format import DamagedError, NewerFormatError

FOLDER = "runs"

_FORMAT = 2
_NAME = re.compile(r"[0-9a-f]{32}\.json", re.ASCII)
_FACTS = ("suite", "data", "seed", "models")
"""Keys whose digest is the name of a record of format 1."""
_TYPES: Mapping[str, type] = {"suite": dict, "data": dict, "seed": int, "models": list, "classes": list}


def encode_record(facts: Mapping[str, Any], notes: Mapping[str, Any]) -> tuple[str, bytes]:
    """Return the path of a record, and its content."""
    record = json.loads(json.dumps({**facts, **notes, "format": _FORMAT}))
    record["checksum"] = _digest(record)
    path = f"{FOLDER}/{_digest(facts)}.json"
    return path, json.dumps(record, sort_keys=True, indent=1).encode()


def is_record(path: str) -> bool:
    """Return whether a file of the folder is a record."""
    return _NAME.fullmatch(PurePosixPath(path).name) is not None


def decode_record(path: str, content: bytes) -> dict[str, Any]:
    """Return a record; a `DamagedError` if it is not as it was written."""
    try:
        record = json.loads(content)
        checksum = record.pop("checksum", None) if isinstance(record, dict) else None
        old = "format" not in record
        expected = PurePosixPath(path).stem if old else checksum
        checked = {name: record[name] for name in _FACTS} if old else record
        if _digest(checked) != expected:
            if _is_newer(record, expected):
                raise NewerFormatError(
                    f"has format {record['format']}; this version reads formats up to {_FORMAT}"
                )
            raise DamagedError("its checksum does not match")
        wrong = [name for name, type in _TYPES.items() if not isinstance(record.get(name, type()), type)]
        if wrong or not isinstance(record.get("data", {}).get("digest", ""), str):
            raise DamagedError(f"wrong type of {', '.join(wrong) or 'data'}")
    except (DamagedError, NewerFormatError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(str(error)[:120] or type(error).__name__) from error
    return dict(record)


def _is_newer(record: Mapping[str, Any], checksum: str | None) -> bool:
    """Return whether a record has a newer format, and is not ours with a wrong digit."""
    version = record.get("format")
    return type(version) is int and version > _FORMAT and _digest({**record, "format": _FORMAT}) != checksum


def _digest(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
