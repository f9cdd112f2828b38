"""A training step that is recorded once on a GPU and replayed, as a CUDA graph.

A small network keeps a GPU waiting: the processor needs longer to name the hundreds of operations of a step
than the GPU to do them. A recorded step is named in one go.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from beaufort.models._lazy import require

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ReplayedStep"]

_BEFORE = 3
"""Steps made one by one first: libraries choose their algorithms, and the optimizer makes its buffers."""

Step = Callable[["Tensor", "Tensor"], "Tensor"]
"""Images and labels to a loss; it changes weights on the way. All batches must have one shape."""


class ReplayedStep:
    """A step that does the same as the one given, faster from the fourth call on.

    Random numbers come from torch's own generator of the device, as seeded before the call. A step that
    cannot be recorded, because it looks at values on the way, is made one by one, with a warning.
    """

    def __init__(self, step: Step) -> None:
        self.torch = require("torch", "training", what="trainings")
        self.step = step
        self.made = 0
        self.graph: Any = None
        self.possible = True

    def __call__(self, images: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch; overwritten by the next call."""
        if self.graph is None and self.possible and self.made >= _BEFORE:
            self._record(images, labels)
        if self.graph is None:
            self.made += 1
            return self._beside(images, labels)
        self.images.copy_(images)
        self.labels.copy_(labels)
        self.graph.replay()
        return self.loss

    def _beside(self, images: Tensor, labels: Tensor) -> Tensor:
        """One step on a stream of its own, as recording wants it of the steps before."""
        cuda = self.torch.cuda
        here, side = cuda.current_stream(images.device), cuda.Stream(images.device)
        side.wait_stream(here)
        with cuda.stream(side):
            loss = self.step(images, labels)
        here.wait_stream(side)
        return loss

    def _record(self, images: Tensor, labels: Tensor) -> None:
        cuda = self.torch.cuda
        self.images, self.labels = images.clone(), labels.clone()
        graph = cuda.CUDAGraph()
        cuda.synchronize(images.device)
        try:
            with cuda.device(images.device), cuda.graph(graph):
                self.loss = self.step(self.images, self.labels)
        except RuntimeError as error:
            self.possible = False
            told = str(error).splitlines()[0]
            warnings.warn(
                f"the step cannot be recorded, so it is made one by one ({told:.200})", stacklevel=2
            )
            return
        self.graph = graph
