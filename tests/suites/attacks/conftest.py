"""The victim of the attacks, and where optional libraries come from."""

from __future__ import annotations

import pytest

from beaufort.models import Network


@pytest.fixture(scope="session")
def victim() -> Network:
    """A small network that classifies all its images correctly."""
    from tests.suites.attacks.attack_nets import net

    return net()
