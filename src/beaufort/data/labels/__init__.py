"""Label spaces: the classes of a dataset, and the outputs of a model that count as each.

```python
from beaufort.data.labels import LabelSpace
space = LabelSpace(count=1000, outputs=((281, 282), (207,)))  # two outputs count as the first class
logits_of_two_classes = space.apply(logits_of_a_thousand)
```
"""

from __future__ import annotations

from beaufort.data.labels.class_maps import LabelMap, Superclass, label_maps, superclasses
from beaufort.data.labels.known_classes import (
    class_ids,
    class_key,
    class_lists,
    class_names,
    devkit_ids,
)
from beaufort.data.labels.label_sets import NO_LABEL, LabelSets, read_label_sets
from beaufort.data.labels.matching import (
    IDENTITY,
    DatasetLabels,
    Grouping,
    ModelOutputs,
    find_label_space,
    read_grouping,
)
from beaufort.data.labels.space import CONVENTIONS, LabelError, LabelSpace, check_convention

__all__ = [
    "CONVENTIONS",
    "IDENTITY",
    "NO_LABEL",
    "DatasetLabels",
    "Grouping",
    "LabelError",
    "LabelMap",
    "LabelSets",
    "LabelSpace",
    "ModelOutputs",
    "Superclass",
    "check_convention",
    "class_ids",
    "class_key",
    "class_lists",
    "class_names",
    "devkit_ids",
    "find_label_space",
    "label_maps",
    "read_grouping",
    "read_label_sets",
    "superclasses",
]
