"""A callback of Lightning that logs robustness while a model is trained.

```python
from lightning import Trainer
from beaufort.compat.lightning import RobustnessCallback

robustness = RobustnessCallback("cifar10-c", "cifar10/test", every_n_epochs=5, limit=500)
trainer = Trainer(callbacks=[robustness])
```
"""

from __future__ import annotations

from typing import Any

from beaufort._core.errors import MissingExtraError
from beaufort._core.optional import prepare_torchvision
from beaufort._core.validation import validate_count
from beaufort.data.objects import Data
from beaufort.evaluation import Conditions
from beaufort.results.monitoring import robustness

prepare_torchvision()  # Lightning imports it
try:
    from lightning.pytorch import Callback
except ImportError as error:
    raise MissingExtraError("RobustnessCallback needs Lightning: pip install lightning") from error


class RobustnessCallback(Callback):
    """Evaluate the model on a suite at the end of every Nth training epoch, and log the numbers."""

    def __init__(
        self,
        suite: Conditions,
        data: Data,
        *,
        every_n_epochs: int = 1,
        prefix: str = "robustness/",
        **options: Any,
    ) -> None:
        """Create the callback.

        Args:
            suite: a suite or its name, as for `beaufort.evaluate`.
            data: the images and labels, as for `beaufort.evaluate`.
            every_n_epochs: number of epochs from one evaluation to the next.
            prefix: beginning of the names of the logged numbers.
            **options: options of `beaufort.results.robustness`: `limit`, `seed`, `mean`, `std`, ….
        """
        self._suite, self._data, self._options = suite, data, options
        self._every, self._prefix = validate_count("every_n_epochs", every_n_epochs), prefix

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Evaluate and log; with several processes, the first one evaluates."""
        if (trainer.current_epoch + 1) % self._every:
            return
        if trainer.is_global_zero:
            options = {"device": str(pl_module.device), **self._options}
            found = robustness(pl_module, self._suite, self._data, **options)
            numbers = {self._prefix + name: value for name, value in found.items()}
            pl_module.log_dict(numbers, rank_zero_only=True)
        trainer.strategy.barrier("beaufort")
