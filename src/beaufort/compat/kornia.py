"""Corruptions as a torch module, for Kornia's `ImageSequential` and `torch.nn.Sequential`.

```python
import kornia.augmentation as K
from beaufort.compat.kornia import CorruptModule

pipeline = K.ImageSequential(K.RandomHorizontalFlip(), CorruptModule("common", severity=(1, 5)))
```
"""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from beaufort.corruptions import transforms


class CorruptModule(nn.Module):
    """Corrupt batches of images `(n, c, h, w)`: uint8, or floats in [0, 1], on any device."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """Create the module; the arguments are those of `beaufort.Corrupt`."""
        super().__init__()
        self._transform = transforms.Corrupt(*args, **{"floats": True, **options})

    def forward(self, images: Tensor) -> Tensor:
        """Return the corrupted images."""
        found: Tensor = self._transform(images)
        return found
