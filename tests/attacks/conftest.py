"""The victim of the attacks, and where optional libraries come from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beaufort.models import Network


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
    from tests.attacks.attack_nets import net

    return net()
