"""The victim of the attacks, and where optional libraries come from."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from beaufort.models import Network

sys.path.insert(0, str(Path(__file__).parent))  # for attack_nets


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> Iterator[None]:
    """On a machine that is busy, threads of torch that wait for each other take most of the time."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def victim() -> Network:
    """A small network that answers all its pictures right."""
    from attack_nets import net

    return net()
