"""Models of any library (uint8 images in, logits out), image filters, and scoring of logits.

```python
from beaufort.models import load_model
model = load_model("resnet50.onnx", mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
logits = model(images)
```

Importing this imports no framework; an adapter imports its library when it loads the first model.
"""

from __future__ import annotations

from beaufort._core.optional import prepare_torchvision
from beaufort.models import _efficientnet_lite0  # noqa: F401  registers its entry of the catalog
from beaufort.models._reply_file import Usage
from beaufort.models.chat import BudgetError, ChatClassifier
from beaufort.models.chat_client import (
    ChatModel,
    ChatReply,
    HttpChatModel,
    TransformersChatModel,
    load_chat_model,
)
from beaufort.models.filtered import FilteredModel, with_filter
from beaufort.models.load import Adapter, adapter_of, adapters, load_model, model_names, models
from beaufort.models.network import Network
from beaufort.models.options import parse_options
from beaufort.models.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocessing
from beaufort.models.python import as_model
from beaufort.models.spec import (
    UNKNOWN,
    Logits,
    Model,
    ModelError,
    ModelFileError,
    ModelSpec,
    StatefulModel,
)

__all__ = [
    "IMAGENET_MEAN",
    "IMAGENET_STD",
    "UNKNOWN",
    "Adapter",
    "BudgetError",
    "ChatClassifier",
    "ChatModel",
    "ChatReply",
    "FilteredModel",
    "HttpChatModel",
    "Logits",
    "Model",
    "ModelError",
    "ModelFileError",
    "ModelSpec",
    "Network",
    "Preprocessing",
    "StatefulModel",
    "TransformersChatModel",
    "Usage",
    "adapter_of",
    "adapters",
    "as_model",
    "load_chat_model",
    "load_model",
    "model_names",
    "models",
    "parse_options",
    "prepare_torchvision",
    "with_filter",
]
