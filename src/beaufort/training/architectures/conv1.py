"""Conv1: the plain network that MNIST-C's other results are divided by.

The paper describes it as a simple CNN. The notebook beside it, which trains the pessimal noise against this
network, uses PyTorch, a network with log-probabilities, and the mean 0.1307 and deviation 0.3081: the MNIST
example of PyTorch as it was in 2019. That is what stands here.
"""

from __future__ import annotations

from torch import nn

from beaufort.training.architectures._layers import Normalize


def make(first: int = 20, second: int = 50, hidden: int = 500, classes: int = 10) -> nn.Sequential:
    """Two convolutions of 5×5, each with ReLU and pooling, and a hidden layer."""
    return nn.Sequential(
        Normalize(0.1307, 0.3081),
        *(nn.Conv2d(1, first, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(first, second, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(second * 4 * 4, hidden), nn.ReLU(), nn.Linear(hidden, classes)),
    )
