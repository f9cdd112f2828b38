"""Recording a training step as a CUDA graph and replaying it.

For small networks, launching the hundreds of operations of a step takes longer than running them. A recorded
step is launched at once.
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
"""Normal steps first, in which libraries choose algorithms and the optimizer creates its buffers."""

Step = Callable[["Tensor", "Tensor"], "Tensor"]
"""Maps images and labels to a loss and updates the weights. All batches must have the same shape."""


class ReplayedStep:
    """A step that is replayed from a recording from the fourth call on.

    Random numbers come from torch's generator of the device, as seeded before the call. Everything that the
    CPU does in a step is frozen into the recording: random numbers, counters, copies to the device and
    decisions. So the last normal step and the recorded one are compared. If their operations differ, if they
    draw random numbers on the CPU or read values from the device, steps are not replayed, with a warning.
    Call `forget` after rarer changes.
    """

    def __init__(self, step: Step) -> None:
        self.torch = require("torch", "training", what="training runs")
        self.step = step
        self.made = 0
        self.graph: Any = None
        self.possible = True
        self._before: StepWatch | None = None

    def __call__(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch; it is overwritten by the next call."""
        if self.graph is None and self.possible and self.made >= _BEFORE:
            self._record(images, labels)
        if self.graph is None:
            self.made += 1
            return self._on_side_stream(images, labels)
        self.images.copy_(images)
        self.labels.copy_(labels)
        self.graph.replay()
        return self.loss

    def forget(self) -> None:
        """Record again, after another normal step."""
        if self.possible:
            self.graph = None
            self.made = min(self.made, _BEFORE - 1)

    def _on_side_stream(self, images: Tensor, labels: Tensor) -> Tensor:
        """Make a step on a separate stream, as recording requires of previous steps."""
        cuda = self.torch.cuda
        here, side = cuda.current_stream(images.device), cuda.Stream(images.device)
        side.wait_stream(here)
        with cuda.stream(side):
            loss = self._watched(images, labels) if self.made == _BEFORE else self.step(images, labels)
        here.wait_stream(side)
        return loss

    def _watched(self, images: Tensor, labels: Tensor) -> Tensor:
        """Make a step and record its operations for comparison."""
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
            reason = _frozen(self._before, watch, drawn)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
        if not reason:
            self.graph = graph
            return
        self.possible = False
        drawn.restore()  # as if recording had not been tried
        warnings.warn(f"training steps are not replayed: {reason:.200}", stacklevel=3)


def _frozen(before: StepWatch | None, watch: StepWatch, drawn: HostDraws) -> str:
    """Return why replaying a recorded step would be wrong; empty if it is not."""
    from beaufort.training._watch import HostDraws

    assert before is not None
    if HostDraws(watch.device) != drawn:
        return "they draw random numbers on the CPU, which a replay would repeat"
    if operation := before.difference(watch):
        return f"they do not do the same in every step, first in {operation}"
    return ""
