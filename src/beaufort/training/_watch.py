"""What a training step asks of the device, written down, to tell whether two steps ask the same."""

from __future__ import annotations

import hashlib
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

_PLAIN = (
    bool,
    int,
    float,
    complex,
    str,
    type(None),
    torch.dtype,
    torch.device,
    torch.layout,
    torch.memory_format,
)
"""What a recording keeps of the arguments of an operation, beside tensors."""


class StepWatch(TorchDispatchMode):
    """Notes every operation of torch while it is entered: its name, sizes, numbers, and host tensors whole.

    Values of tensors on the device are left out: they are what may differ between steps that are recorded
    once and replayed. Everything else is part of the recording, so it must be the same in every step.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.noted: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        self.noted.append(f"{func}{self._told((args, kwargs))}")
        return func(*args, **kwargs)

    def difference(self, other: StepWatch) -> str:
        """The first operation that is not the same in both, by its name; empty if all are."""
        for one, two in zip(self.noted, other.noted, strict=False):
            if one != two:
                return two.partition("(")[0]
        longer = max(self.noted, other.noted, key=len)
        common = min(len(self.noted), len(other.noted))
        return longer[common].partition("(")[0] if len(longer) > common else ""

    def _told(self, value: Any) -> str:
        if isinstance(value, Tensor):
            return self._tensor(value)
        if isinstance(value, dict):
            return self._told([*value.items()])
        if isinstance(value, list | tuple):
            return f"({', '.join(map(self._told, value))})"
        return repr(value) if isinstance(value, _PLAIN) else type(value).__name__

    def _tensor(self, tensor: Tensor) -> str:
        about = f"{tensor.dtype}{tuple(tensor.shape)}"
        if tensor.device == self.device or tensor.device.type != "cpu":
            return about
        content = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        return f"{about} {hashlib.blake2b(content, digest_size=8).hexdigest()}"


class HostDraws:
    """Where the random generators of the processor stood: torch's, NumPy's and Python's own.

    Torch's is left out where the processor is the device of the training itself.
    """

    def __init__(self, device: torch.device) -> None:
        self.torch = torch.get_rng_state() if device.type != "cpu" else None
        self.numpy: Any = np.random.get_state()  # noqa: NPY002  other people's code draws from it
        self.python = random.getstate()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostDraws) and self._bytes() == other._bytes()

    __hash__ = None  # type: ignore[assignment]

    def _bytes(self) -> tuple[Any, ...]:
        kind, words, *rest = self.numpy
        own = b"" if self.torch is None else self.torch.numpy().tobytes()
        return own, kind, words.tobytes(), *rest, self.python

    def restore(self) -> None:
        """Put them back."""
        if self.torch is not None:
            torch.set_rng_state(self.torch)
        np.random.set_state(self.numpy)  # noqa: NPY002
        random.setstate(self.python)
