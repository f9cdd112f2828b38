"""What a timm model was trained on, read off its name.

`resnet50.fb_swsl_ig1b_ft_in1k` has words between dots and underscores, of which `ig1b` says that the weights
saw a billion pictures of Instagram. The rule looks at these words alone, in the order of `KINDS`: what was
seen beyond ImageNet-1k decides first. It does not know what data a teacher saw, nor of a teacher that the
name does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

KINDS: Mapping[str, frozenset[str]] = {
    "image-text": frozenset({"clip", "laion2b", "laiona", "openai", "webli"}),
    "web": frozenset({"ig1b", "jft", "m30m", "m38m", "seer", "swag", "yfcc100m"}),
    "imagenet-21k": frozenset({"6m", "in12k", "in21k", "in22k"}),
    "imagenet-1k, adversarial": frozenset({"adv", "ap"}),
    "imagenet-1k, distilled": frozenset({"dist", "distilled", "ssld", "teacher", "usi"}),
    "imagenet-1k": frozenset(),
}
"""Kinds of training data, and the words of a name that tell each; the last is what has none of them."""

TYPES: Mapping[str, str] = {
    "image-text": "MORE_DATA",
    "web": "MORE_DATA",
    "imagenet-21k": "MORE_DATA",
    "imagenet-1k, adversarial": "ROBUST_INTV",
    "imagenet-1k, distilled": "DISTILLED",
    "imagenet-1k": "STANDARD",
}
"""The testbed's type of each kind; it has none for models that learned from a teacher."""


def training_data(name: str) -> str:
    """The kind of data that a model was trained on, by its name.

    >>> training_data("vit_base_patch16_clip_224.laion2b_ft_in12k_in1k@224")
    'image-text'
    >>> training_data("resnet50.a1_in1k@288")
    'imagenet-1k'
    """
    words = set(re.split(r"[._]", name.rpartition("@")[0] or name))
    return next(kind for kind, telling in KINDS.items() if words & telling or not telling)
