"""Protocols: which images a model must not have seen in training, as data.

```python
from beaufort.data import open_dataset
from beaufort.data.protocols import hold_out, protocols

icons = open_dataset("icons-50:Icons-50")
split = protocols["icons-50-style"].split(icons)     # or hold_out(icons, "style", "apple")
train, test = icons.at(split.train), icons.at(split.test)
```
"""

from __future__ import annotations

from beaufort.data.protocols.published import HoldOutProtocol, protocols
from beaufort.data.protocols.split import ImageTable, Split, hold_out, leave_one_out, split_by

__all__ = ["HoldOutProtocol", "ImageTable", "Split", "hold_out", "leave_one_out", "protocols", "split_by"]
