"""Checkpoints: tensors as safetensors, facts as JSON, never a pickle; written atomically."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from beaufort._core.errors import BeaufortError
from beaufort._core.files import write_bytes
from beaufort._core.optional import require

if TYPE_CHECKING:
    from torch import Tensor, nn


class TrainingFileError(BeaufortError, OSError):
    """A file of a training run that is unreadable or belongs to another run."""


def write_weights(path: Path, model: nn.Module) -> None:
    """Write the parameters and buffers of a network."""
    write_bytes(path, _bytes(dict(model.state_dict()), {}))


def read_weights(path: Path, model: nn.Module) -> None:
    """Load the tensors of a file into a network."""
    tensors, _ = _read(path)
    try:
        model.load_state_dict(tensors)
    except RuntimeError as error:
        raise TrainingFileError(f"the tensors of {path} do not fit the network: {_one_line(error)}") from None


def write_facts(path: Path, facts: Mapping[str, Any]) -> None:
    """Write plain values as JSON."""
    write_bytes(path, (json.dumps(facts, indent=2, allow_nan=False) + "\n").encode())


def write_state(
    path: Path, model: nn.Module, optimizer: Any, extra: Mapping[str, Tensor], facts: Mapping[str, Any]
) -> None:
    """Write everything that a training run needs to resume."""
    tensors = {f"model.{key}": value for key, value in model.state_dict().items()}
    plain: dict[str, Any] = {}
    for number, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            if hasattr(value, "detach"):
                tensors[f"optimizer.{number}.{key}"] = value
            else:
                plain[f"{number}.{key}"] = value
    tensors |= {f"extra.{key}": value for key, value in extra.items()}
    write_bytes(path, _bytes(tensors, {"facts": json.dumps(dict(facts)), "optimizer": json.dumps(plain)}))


def read_state(path: Path, model: nn.Module, optimizer: Any) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Load a checkpoint into the network and the optimizer; return its facts and extra tensors."""
    tensors, about = _read(path)
    try:
        facts = json.loads(about["facts"])
        plain = json.loads(about["optimizer"])
    except (KeyError, ValueError):
        raise TrainingFileError(f"{path} is not a checkpoint; delete it to start again") from None
    state: dict[int, dict[str, Any]] = {}
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, number, name = key.split(".", 2)
            state.setdefault(int(number), {})[name] = value
    for key, value in plain.items():
        number, _, name = key.partition(".")
        state.setdefault(int(number), {})[name] = value
    try:
        model.load_state_dict(_under("model.", tensors))
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    except (RuntimeError, ValueError) as error:
        raise TrainingFileError(f"{path} belongs to another network: {_one_line(error)}") from None
    return facts, _under("extra.", tensors)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}


def _bytes(tensors: Mapping[str, Tensor], about: dict[str, str]) -> bytes:
    save = require("safetensors.torch", "training", what="checkpoints").save
    plain = {key: value.detach().cpu().contiguous().clone() for key, value in tensors.items()}
    content: bytes = save(plain, metadata={"format": "pt", **about})
    return content


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    safetensors = require("safetensors", "training", what="checkpoints")
    try:
        with safetensors.safe_open(str(path), framework="pt", device="cpu") as file:
            return {key: file.get_tensor(key) for key in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except FileNotFoundError:
        raise TrainingFileError(f"file not found: {path}") from None
    except Exception as error:  # safetensors' error class is not public in all versions
        raise TrainingFileError(f"cannot read {path} as safetensors: {error!s:.200}") from None
