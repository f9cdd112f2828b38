"""What each run was asked for, as small JSON files.

A file is called by the digest of what was asked for, so that the same run replaces its own record. Inside,
`checksum` is the digest of everything else. Records of the first format have none; their names are checked
against what they say was asked for.
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
_ASKED = ("suite", "data", "seed", "models")
"""What the name of a record of the first format is the digest of."""
_TYPES: Mapping[str, type] = {"suite": dict, "data": dict, "seed": int, "models": list, "classes": list}


def encode_record(facts: Mapping[str, Any], notes: Mapping[str, Any]) -> tuple[str, bytes]:
    """The path of a record, and its content."""
    record = json.loads(json.dumps({**facts, **notes, "format": _FORMAT}))
    record["checksum"] = _digest(record)
    path = f"{FOLDER}/{_digest(facts)}.json"
    return path, json.dumps(record, sort_keys=True, indent=1).encode()


def is_record(path: str) -> bool:
    """Whether a file of the folder is one of ours."""
    return _NAME.fullmatch(PurePosixPath(path).name) is not None


def decode_record(path: str, content: bytes) -> dict[str, Any]:
    """What a run was asked for; a `DamagedError` if the record is not as it was written."""
    try:
        record = json.loads(content)
        checksum = record.pop("checksum", None) if isinstance(record, dict) else None
        old = "format" not in record
        expected = PurePosixPath(path).stem if old else checksum
        checked = {name: record[name] for name in _ASKED} if old else record
        if _digest(checked) != expected:
            if _is_newer(record, expected):
                raise NewerFormatError(
                    f"has format {record['format']}, and this version reads up to {_FORMAT}"
                )
            raise DamagedError("it does not say what was written")
        wrong = [name for name, type in _TYPES.items() if not isinstance(record.get(name, type()), type)]
        if wrong or not isinstance(record.get("data", {}).get("digest", ""), str):
            raise DamagedError(f"its {', '.join(wrong) or 'data'} is not of the type that a record has")
    except (DamagedError, NewerFormatError):
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(str(error)[:120] or type(error).__name__) from error
    return dict(record)


def _is_newer(record: Mapping[str, Any], checksum: str | None) -> bool:
    """Whether a record is of a newer format, and not ours with a wrong digit."""
    version = record.get("format")
    return type(version) is int and version > _FORMAT and _digest({**record, "format": _FORMAT}) != checksum


def _digest(facts: Mapping[str, Any]) -> str:
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
