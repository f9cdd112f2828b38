"""A training step that is recorded once on a GPU and replayed, as a CUDA graph.

A small network keeps a GPU waiting: the processor needs longer to name the hundreds of operations of a step
than the GPU to do them. A recorded step is named in one go.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from beaufort._core.optional import require

if TYPE_CHECKING:
    from torch import Tensor

    from beaufort.training._watch import HostDraws, StepWatch

_BEFORE = 3
"""Steps made one by one first: libraries choose their algorithms, and the optimizer makes its buffers."""

Step = Callable[["Tensor", "Tensor"], "Tensor"]
"""Images and labels to a loss; it changes weights on the way. All batches must have one shape."""


class ReplayedStep:
    """A step that does the same as the one given, faster from the fourth call on.

    Random numbers come from torch's own generator of the device, as seeded before the call. What the
    processor does in a step would be frozen into the recording: numbers that it draws, counts or copies to
    the device, and what it decides. So the last step before the recording and the recorded one are watched.
    If they do not ask the same of the device, or draw on the processor, or if the step looks at values on
    the way, the step is made one by one, with a warning. What changes more rarely than that must be told by
    `forget`.
    """

    def __init__(self, step: Step) -> None:
        self.torch = require("torch", "training", what="trainings")
        self.step = step
        self.made = 0
        self.graph: Any = None
        self.possible = True
        self._before: StepWatch | None = None

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

    def forget(self) -> None:
        """Record anew, after another step that is made as usual: what a step does may have changed."""
        if self.possible:
            self.graph = None
            self.made = min(self.made, _BEFORE - 1)

    def _beside(self, images: Tensor, labels: Tensor) -> Tensor:
        """One step on a stream of its own, as recording wants it of the steps before."""
        cuda = self.torch.cuda
        here, side = cuda.current_stream(images.device), cuda.Stream(images.device)
        side.wait_stream(here)
        with cuda.stream(side):
            loss = self._watched(images, labels) if self.made == _BEFORE else self.step(images, labels)
        here.wait_stream(side)
        return loss

    def _watched(self, images: Tensor, labels: Tensor) -> Tensor:
        """One step as usual, its operations written down to compare the recorded one with."""
        from beaufort.training._watch import StepWatch

        with StepWatch(images.device) as self._before:
            return self.step(images, labels)

    def _record(self, images: Tensor, labels: Tensor) -> None:
        from beaufort.training._watch import HostDraws, StepWatch

        cuda = self.torch.cuda
        self.images, self.labels = images.clone(), labels.clone()
        graph = cuda.CUDAGraph()
        cuda.synchronize(images.device)
        drawn = HostDraws(images.device)
        try:
            with cuda.device(images.device), cuda.graph(graph), StepWatch(images.device) as watch:
                self.loss = self.step(self.images, self.labels)
            told = _frozen(self._before, watch, drawn)
        except RuntimeError as error:
            told = str(error).splitlines()[0]
        if not told:
            self.graph = graph
            return
        self.possible = False
        drawn.restore()  # the step is made as if it had never been tried
        warnings.warn(f"the step cannot be recorded, so it is made one by one ({told:.200})", stacklevel=3)


def _frozen(before: StepWatch | None, watch: StepWatch, drawn: HostDraws) -> str:
    """What of a recorded step would be the same in every replay though it is not; empty if nothing."""
    from beaufort.training._watch import HostDraws

    assert before is not None
    if HostDraws(watch.device) != drawn:
        return "it draws random numbers on the processor, which a replay would repeat"
    if operation := before.difference(watch):
        return f"it does not do the same in every step, first in {operation}"
    return ""
