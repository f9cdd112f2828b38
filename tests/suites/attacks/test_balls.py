"""Balls: projections are inside to the last bit, and points inside are unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from beaufort.suites.attacks import BALLS

torch = pytest.importorskip("torch", reason="torch is not installed")


def images(seed: int, spread: float = 1.0) -> Any:
    return spread * torch.rand((6, 3, 9, 8), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("norm", BALLS)
@pytest.mark.parametrize("radius", [0.0, 0.5 / 255, 8 / 255, 0.3, 5.0])
def test_nothing_is_outside(norm: str, radius: float) -> None:
    ball, centers = BALLS[norm], images(1)
    found = ball.inside(images(2, 3.0) - 1, centers, radius)
    assert (ball.sizes(found.double() - centers.double()) <= radius).all()
    if radius == 0:
        assert (found == centers).all()


@pytest.mark.parametrize("norm", BALLS)
def test_the_ball_is_used_to_its_rim(norm: str) -> None:
    ball, centers = BALLS[norm], images(1)
    found = ball.inside(centers + images(2, 9.0) - 4, centers, 0.25)
    assert torch.allclose(
        ball.sizes(found.double() - centers.double()), torch.tensor(0.25).double(), rtol=1e-5
    )


@pytest.mark.parametrize("norm", BALLS)
def test_values_inside_the_ball_stay(norm: str) -> None:
    ball, centers = BALLS[norm], images(1)
    near = centers + 0.001 * (images(2) - 0.5)
    assert (ball.inside(near, centers, 0.2) == near).all()


@pytest.mark.parametrize("norm", BALLS)
def test_a_direction_has_size_one_and_goes_uphill(norm: str) -> None:
    ball, gradients = BALLS[norm], images(3) - 0.5
    direction = ball.direction(gradients)
    assert torch.allclose(ball.sizes(direction), torch.ones(6).double())
    assert ((direction * gradients).flatten(1).sum(dim=1) > 0).all()
    assert (ball.direction(torch.zeros(2, 3, 4, 4)) == 0).all()
