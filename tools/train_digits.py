"""Train the classifier of digits that comes with Beaufort, and write it down as an ONNX file.

    python tools/train_digits.py                 # what src/beaufort/models/data/digits.onnx was made with
    python tools/train_digits.py --validate      # the same without 5,000 of the digits, to choose settings by

An ordinary small network: the 60,000 digits of MNIST's training set as they are, without augmentation, and
none of MNIST-C's corruptions, so that its results can stand beside those of the paper's Conv1. The test
digits are opened once, at the end. With the same seed, processor and PyTorch, the same file comes out. It
needs `pip install 'beaufort[torch]'` and takes a few minutes on one processor.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import beaufort
from beaufort.datasets import open_dataset
from beaufort.models import load_model
from beaufort.models._onnx_write import Node, onnx_bytes

DATA = Path(beaufort.__file__).parent / "models" / "data"
WIDTHS = (16, 32, 64)
EPOCHS = 15
BATCH = 128
PEAK_RATE = 2e-3
WEIGHT_DECAY = 1e-2
DROPOUT = 0.5
HELD_OUT = 5_000
OPERATIONS: dict[type[nn.Module], tuple[str, dict[str, Any]]] = {
    nn.Conv2d: ("Conv", {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1)}),
    nn.ReLU: ("Relu", {}),
    nn.MaxPool2d: ("MaxPool", {"kernel_shape": (2, 2), "strides": (2, 2)}),
    nn.Flatten: ("Flatten", {}),
    nn.Linear: ("Gemm", {"transB": 1}),
}
"""What the layers are called in ONNX."""


def digits(split: str) -> tuple[Tensor, Tensor]:
    """Images uint8 `(n, 1, 28, 28)` and labels."""
    dataset = open_dataset(f"mnist-{split}")
    images = np.stack([dataset[i].image for i in range(len(dataset))])
    return torch.from_numpy(images.transpose(0, 3, 1, 2)), torch.from_numpy(np.array(dataset.labels))


def network() -> nn.Sequential:
    """Three convolutions with ReLU, pooling after the first two, and a linear layer."""
    first, second, third = WIDTHS
    return nn.Sequential(
        *(nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(second, third, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Dropout(DROPOUT), nn.Linear(third * 7 * 7, 10)),
    )


def train(images: Tensor, labels: Tensor, seed: int) -> nn.Sequential:
    """A network after all epochs; there is no other one to choose from."""
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)
    model = network()
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_RATE, weight_decay=WEIGHT_DECAY)
    steps = len(images) // BATCH
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, total_steps=EPOCHS * steps)
    for epoch in range(EPOCHS):
        losses = []
        for batch in torch.randperm(len(images))[: steps * BATCH].view(steps, BATCH):
            loss = nn.functional.cross_entropy(model(images[batch].float() / 255), labels[batch])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1} of {EPOCHS}: loss {np.mean(losses):.4f}", flush=True)
    model.eval()
    return model


def as_onnx(model: nn.Sequential) -> bytes:
    """The network as an ONNX file."""
    nodes: list[Node] = []
    weights: dict[str, Any] = {}
    last = "image"
    for place, layer in enumerate(model):
        if isinstance(layer, nn.Dropout):
            continue  # only there while it learns
        name = "logits" if layer is model[-1] else f"layer{place}"
        names = tuple(f"{name}.{key}" for key, _ in layer.named_parameters())
        weights |= dict(zip(names, map(values, layer.parameters()), strict=True))
        nodes.append(Node(OPERATIONS[type(layer)][0], (last, *names), name, OPERATIONS[type(layer)][1]))
        last = name
    return onnx_bytes("digits", nodes, weights, image=(1, 28, 28), classes=10)


def values(tensor: Tensor) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """A tensor as an array of its own."""
    return tensor.detach().contiguous().numpy().astype(np.float32)


def multiplications(model: nn.Sequential) -> int:
    """Of one digit's way through the network."""
    count, size = 0, 28
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            count += layer.weight.numel() * size**2
        elif isinstance(layer, nn.MaxPool2d):
            size //= 2
        elif isinstance(layer, nn.Linear):
            count += layer.weight.numel()
    return count


def right(model: nn.Sequential, images: Tensor, labels: Tensor) -> int:
    """How many digits are recognized."""
    with torch.no_grad():
        return sum(
            int((model(some.float() / 255).argmax(1) == theirs).sum())
            for some, theirs in zip(torch.split(images, 500), torch.split(labels, 500), strict=True)
        )


def main() -> None:
    """Train, write, and test what was written."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--output", type=Path, default=DATA / "digits.onnx", help="the ONNX file")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--validate", action="store_true", help="hold 5,000 digits out; write nothing")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    images, labels = digits("train")
    if chosen.validate:
        order = torch.randperm(len(images), generator=torch.Generator().manual_seed(chosen.seed))
        held, kept = order[:HELD_OUT], order[HELD_OUT:]
        model = train(images[kept], labels[kept], chosen.seed)
        print(f"held out: {right(model, images[held], labels[held]) / HELD_OUT:.2%} of {HELD_OUT:,} right")
        return
    start = time.perf_counter()
    model = train(images, labels, chosen.seed)
    seconds = time.perf_counter() - start
    content = as_onnx(model)
    chosen.output.write_bytes(content)
    written = load_model(f"onnx:{chosen.output}")
    test = open_dataset("mnist-test")
    answers = written(np.stack([test[i].image for i in range(len(test))])).argmax(1)
    facts = {
        "sha256": hashlib.sha256(content).hexdigest(),
        "bytes": len(content),
        "parameters": sum(one.numel() for one in model.parameters()),
        "multiply_adds": multiplications(model),
        "test_right": int((answers == test.labels).sum()),
        "test_digits": len(test),
        "seed": chosen.seed,
        "epochs": EPOCHS,
        "seconds": round(seconds),
        "made_by": "tools/train_digits.py",
        "torch": torch.__version__,
    }
    chosen.output.with_suffix(".json").write_text(json.dumps(facts, indent=2) + "\n")
    print(json.dumps(facts, indent=2))
    print(f"{facts['test_right'] / len(test):.2%} of the test digits are right; written to {chosen.output}")


if __name__ == "__main__":
    main()
