"""What every page of Beaufort shares: its files of style and script, and a policy that allows nothing from outside."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files

__all__ = ["bundle", "content_policy", "page_file"]


@cache
def page_file(name: str, package: str = "beaufort.report") -> str:
    """The text of a file in a package's folder `data`."""
    return (files(package) / "data" / name).read_text(encoding="utf-8")


def bundle(*scripts: str) -> str:
    """Scripts as one, with names of its own."""
    return "\n(() => {\n'use strict';\n" + "\n".join(scripts) + "\n})();\n"


def content_policy(script: str) -> str:
    """Nothing from anywhere else, and no script but this one."""
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
