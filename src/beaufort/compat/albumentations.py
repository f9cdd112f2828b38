"""Corruptions as a transform of Albumentations.

```python
import albumentations as A
from beaufort.compat.albumentations import CorruptTransform

pipeline = A.Compose([A.HorizontalFlip(), CorruptTransform("common", severity=(1, 5), p=0.5)])
```
"""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from beaufort._core.errors import MissingExtraError
from beaufort.corruptions import transforms

try:
    from albumentations import ImageOnlyTransform
except ImportError as error:
    raise MissingExtraError("CorruptTransform needs Albumentations: pip install albumentations") from error


class CorruptTransform(ImageOnlyTransform):  # type: ignore[misc]
    """Corrupt uint8 images; masks, boxes and key points stay as they are.

    A corruption is chosen by the pixels of an image, and `p` by the generator of the pipeline.
    """

    def __init__(
        self,
        *args: Any,
        p: float = 0.5,
        **options: Any,
    ) -> None:
        """Create the transform; other arguments are those of `beaufort.Corrupt`."""
        super().__init__(p=p)
        self._transform = transforms.Corrupt(*args, **options)

    def apply(self, img: NDArray[Any], **params: Any) -> NDArray[Any]:  # noqa: ARG002
        """Return the corrupted image."""
        found: NDArray[Any] = self._transform(img)
        return found

    def get_transform_init_args_names(self) -> tuple[str, ...]:
        """Return no names: the options are not serialized."""
        return ()
