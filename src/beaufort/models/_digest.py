"""What identifies the parameters of a network."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from beaufort._core.errors import OptionError
from beaufort._core.text import encodable
from beaufort.models.spec import UNKNOWN


def digest_of_files(files: Iterable[Path]) -> str:
    """The sha256 of one file, or of the names and sha256 of several."""
    found = []
    for file in files:
        with file.open("rb") as opened:
            found.append((file.name, hashlib.file_digest(opened, "sha256").hexdigest()))
    if len(found) == 1:
        return f"sha256:{found[0][1]}"
    together = "".join(f"{name}\0{digest}\n" for name, digest in sorted(found))
    return f"sha256:{hashlib.sha256(together.encode()).hexdigest()}"


def digest_of_tensors(tensors: Mapping[str, Any]) -> str:
    """The sha256 of torch tensors by name: order, device and memory format do not matter."""
    torch: Any = import_module("torch")
    whole = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        whole.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        if tensor.numel():
            whole.update(memoryview(tensor.reshape(-1).view(torch.uint8).numpy()))
    return f"sha256:{whole.hexdigest()}"


def digest_of_layers(module: Any) -> str:
    """The sha256 of what a torch module prints: its layers and their settings, which no weight tells."""
    printed = re.sub(r"\bat 0x[0-9a-fA-F]+", "", repr(module))  # another address in every process
    return f"sha256:{hashlib.sha256(encodable(printed).encode()).hexdigest()}"


def declared(version: str | None) -> str:
    """The identity that a person vouches for; unknown if nobody does."""
    if version is None:
        return UNKNOWN
    if not str(version).strip():
        raise OptionError("version must not be empty; give a string that changes whenever the model does")
    return f"declared:{version}"
