"""Label spaces: what a data set's classes are, and which outputs of a model count as each.

```python
from beaufort.data.labels import LabelSpace
space = LabelSpace(count=1000, outputs=((281, 282), (207,)))  # many outputs to one class, one to another
logits_of_two_classes = space.apply(logits_of_a_thousand)
```
"""

from __future__ import annotations

from beaufort.data.labels._errors import LabelError
from beaufort.data.labels._known import class_ids, class_lists, class_names, devkit_ids, same_name
from beaufort.data.labels.broad import BroadClass, broad_classes
from beaufort.data.labels.find import IDENTITY, Grouping, find_space, read_grouping
from beaufort.data.labels.maps import LabelMap, label_maps
from beaufort.data.labels.sides import DataLabels, Outputs
from beaufort.data.labels.space import CONVENTIONS, LabelSpace, check_convention
from beaufort.data.labels.truths import NO_LABEL, Truths, read_truths

__all__ = [
    "CONVENTIONS",
    "IDENTITY",
    "NO_LABEL",
    "BroadClass",
    "DataLabels",
    "Grouping",
    "LabelError",
    "LabelMap",
    "LabelSpace",
    "Outputs",
    "Truths",
    "broad_classes",
    "check_convention",
    "class_ids",
    "class_lists",
    "class_names",
    "devkit_ids",
    "find_space",
    "label_maps",
    "read_grouping",
    "read_truths",
    "same_name",
]
