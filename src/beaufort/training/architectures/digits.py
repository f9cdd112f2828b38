"""Small networks for digits: Conv1, Conv2 and Conv3 of the paper of MNIST-C, and `demo:digits`."""

from __future__ import annotations

from torch import nn

from beaufort.training.architectures._layers import Normalize


def conv1(first: int = 20, second: int = 50, hidden: int = 500, classes: int = 10) -> nn.Sequential:
    """Return Conv1, the baseline of relative errors on MNIST-C.

    The paper calls it a simple CNN. The notebook published with it, which trains the pessimal noise against
    this network, matches PyTorch's MNIST example of 2019, which is implemented here.
    """
    return nn.Sequential(
        Normalize(0.1307, 0.3081),
        *(nn.Conv2d(1, first, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(second * 4 * 4, hidden), nn.ReLU(), nn.Linear(hidden, classes)),
    )


def conv2(first: int = 32, second: int = 64, hidden: int = 1024, classes: int = 10) -> nn.Sequential:
    """Return the network of Madry et al. (2018), arXiv:1706.06083, section 5, for MNIST.

    As in their program, the 5×5 filters are padded and values are not normalized.
    """
    return nn.Sequential(
        *(nn.Conv2d(1, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(second * 7 * 7, hidden), nn.ReLU(), nn.Linear(hidden, classes)),
    )


def conv3(first: int = 32, second: int = 64, classes: int = 10) -> nn.Sequential:
    """Return the network of Wang & Yu (2019), arXiv:1905.09591, for MNIST; values are mapped to -1..1."""
    return nn.Sequential(
        Normalize(0.5, 0.5),
        *(nn.Conv2d(1, first, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(second * 7 * 7, classes)),
    )


def digits(
    widths: tuple[int, int, int] = (16, 32, 64), dropout: float = 0.5, classes: int = 10
) -> nn.Sequential:
    """Return the network of `demo:digits`: three convolutions and a linear layer with dropout."""
    first, second, third = widths
    return nn.Sequential(
        *(nn.Conv2d(1, first, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(second, third, 3, padding=1), nn.ReLU()),
        *(nn.Flatten(), nn.Dropout(dropout), nn.Linear(third * 7 * 7, classes)),
    )
