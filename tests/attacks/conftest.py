"""The victim of the attacks, and where optional libraries come from."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from beaufort.models import Network

sys.path.insert(0, str(Path(__file__).parent))  # for attack_nets


@pytest.fixture(scope="session")
def victim() -> Network:
    """A small network that answers all its pictures right."""
    from attack_nets import net

    return net()
