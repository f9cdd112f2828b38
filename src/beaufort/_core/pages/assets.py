"""Style and scripts of pages, and content security policies that block everything external."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any


@cache
def asset(name: str) -> str:
    """Return the text of a style or script: `report/charts.js` is `report/data/charts.js`."""
    part, _, file = name.rpartition("/")
    return (files("beaufort") / part / "data" / file).read_text(encoding="utf-8")


def bundle(*scripts: str) -> str:
    """Return scripts as one, in a scope of its own."""
    return "\n(() => {\n'use strict';\n" + "\n".join(scripts) + "\n})();\n"


def content_policy(script: str) -> str:
    """Return the policy of a file: nothing external, and no script but this one."""
    source = _hash_source(script) if script else "'none'"
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {source}; "
        "base-uri 'none'; form-action 'none'"
    )


def served_policy(*, styles: Sequence[str] = (), scripts: Sequence[str] = ()) -> str:
    """Return the policy of a served page: this style and script, images and forms of its server."""
    style = "".join(map(asset, ("_core/pages/base.css", *styles)))
    script = bundle(*map(asset, scripts)) if scripts else ""
    return (
        f"default-src 'none'; img-src 'self' data:; style-src {_hash_source(style)}; "
        f"script-src {_hash_source(script)}; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


def _hash_source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def as_script(data: Mapping[str, Any]) -> str:
    """Return JSON that cannot end the script element that contains it."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
