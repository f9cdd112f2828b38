"""ImageNet-22K: a new last layer for 25 superclasses, tested on classes that ImageNet-1k lacks.

As in the paper of Icons-50 and its program: a network for ImageNet-1k keeps its weights, and only a new last
layer is trained, for one epoch by SGD, on classes of ImageNet-1k; it is tested on other classes of the same
superclasses. Here features are of center crops, without random crops and mirroring, and every tenth image of
the first classes is kept out of training, as the test on known classes.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from beaufort._core.errors import ImageFileError, OptionError
from beaufort.data import Dataset, PreparedImages, Problem, Step, load_dataset
from beaufort.models.onnx_graph import GraphNetwork, open_graph
from beaufort.models.torch import choose_device
from beaufort.studies.predictions import StudyPredictions, write_predictions
from beaufort.studies.study_file import StudySettings
from beaufort.studies.study_tasks import StudyTask

PART = "imagenet-22k"
_SEEN_TEST = 10
"""One of this many images of known classes is kept out of training."""
_BATCH, _RATE, _MOMENTUM, _DECAY = 128, 0.01, 0.9, 5e-4


def last_layer_tasks(settings: StudySettings) -> list[StudyTask]:
    """Return a task for each network and seed."""
    folder = settings.dataset("networks")
    paths = sorted(Path(folder).glob("*.onnx")) if folder else []
    if not paths:
        raise OptionError(f"{PART} requires networks for ImageNet-1k: --data networks=PATH with ONNX files")
    return [
        StudyTask(
            f"last layer of {path.stem}, seed {seed}",
            f"predictions/{path.stem}@{PART}-seed{seed}.npz",
            f"{__name__}:make_last_layer",
            {"settings": settings, "network": str(path), "seed": seed},
        )
        for path in paths
        for seed in range(settings.seeds)
    ]


def make_last_layer(
    folder: Path, deadline: float | None, *, settings: StudySettings, network: str, seed: int
) -> bool:
    """Train a last layer and evaluate it on held-out images of known classes and on all of other classes."""
    device = choose_device(settings.device)
    dataset = load_dataset(settings.dataset("imagenet-25"))
    features, labels = _features(settings, network), torch.from_numpy(dataset.labels).to(device)
    is_seen = np.array(dataset.column("part")) == "seen"
    seen = np.flatnonzero(is_seen)
    if not len(seen) or is_seen.all():
        raise OptionError(f"{dataset.name} must have images of classes of ImageNet-1k and of other classes")
    test = seen[::_SEEN_TEST]
    layer = _train(features, labels, np.setdiff1d(seen, test), len(dataset.classes), seed)
    facts = {"seed": seed, "device": device, "torch": torch.__version__, "losses": None, "seconds": 0.0}
    for name, places in ((f"{PART}-seen", test), (PART, np.flatnonzero(~is_seen))):
        with torch.no_grad():
            predicted = layer(features[torch.from_numpy(places)]).argmax(1).to(torch.uint8).cpu().numpy()
        found = StudyPredictions((name,), predicted[None], dataset.labels[places].astype(np.uint8), facts)
        write_predictions(folder / "predictions" / f"{Path(network).stem}@{name}-seed{seed}.npz", found)
    return True


@lru_cache(maxsize=1)
def _features(settings: StudySettings, network: str) -> Tensor:
    """Return the input of a network's last layer for all images, on the device."""
    device = choose_device(settings.device)
    graph: GraphNetwork = open_graph(Path(network), device).without_last_layer()
    dataset: Dataset = load_dataset(settings.dataset("imagenet-25"))
    prepared = PreparedImages(dataset, (Step.parse("resize 256"), Step.parse("crop 224")), False)
    rows = []
    with torch.no_grad():
        for start in range(0, len(dataset), 50):
            images = [prepared(place) for place in range(start, min(start + 50, len(dataset)))]
            for image in images:
                if isinstance(image, Problem):
                    raise ImageFileError(f"cannot read {image.id}: {image.message}")
            pixels: NDArray[Any] = np.stack(images).transpose(0, 3, 1, 2)
            rows.append(graph(torch.from_numpy(np.ascontiguousarray(pixels)).to(device).float() / 255))
    return torch.cat(rows)


def _train(features: Tensor, labels: Tensor, places: NDArray[np.int64], classes: int, seed: int) -> nn.Linear:
    torch.manual_seed(seed)
    layer = nn.Linear(features.shape[1], classes).to(features.device)
    optimizer = torch.optim.SGD(layer.parameters(), _RATE, momentum=_MOMENTUM, weight_decay=_DECAY)
    order = torch.from_numpy(np.random.default_rng(seed).permutation(places))
    for batch in order.split(_BATCH):
        loss = nn.functional.cross_entropy(layer(features[batch]), labels[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return layer
