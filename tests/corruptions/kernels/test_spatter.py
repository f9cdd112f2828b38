"""Edges, depths and relief of water, against OpenCV's filters and against the scans as they are defined."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from beaufort.corruptions._kernels import cpu_ops
from beaufort.corruptions._kernels.cpu.spatter import relief
from beaufort.corruptions._kernels.cpu.spatter_edges import REACH, depths, edges

f32 = np.float32
STEPS = (f32(1), f32(1.4), f32(2.1969))
SHAPES = [(64, 64), (33, 50), (47, 16), (17, 17), (2, 2), (1, 1), (1, 9), (9, 1), (3, 70)]
with_ipp = pytest.mark.skipif(not cv2.ipp.useIPP(), reason="OpenCV rounds distances differently without IPP")


def waters(shape: tuple[int, int]) -> list[np.ndarray]:
    """Noise that is smooth to several degrees, as it is and dry below a threshold."""
    rng = np.random.default_rng(0)
    made = [rng.integers(0, 256, shape).astype(np.uint8), np.zeros(shape, np.uint8)]
    for sigma in (0.7, 2.0, 4.0):
        field = cv2.GaussianBlur(rng.normal(size=shape), (0, 0), sigma)
        field = 166 + 50 * field / max(field.std(), 1e-9)
        made += [
            np.clip(field, 0, 255).astype(np.uint8),
            np.where(field < 173, 0, field.clip(0, 255)).astype(np.uint8),
        ]
    return made


def found_edges(image: np.ndarray, low: int, high: int) -> np.ndarray:
    height, width = image.shape
    labels = np.empty((height + 2, (width + 9) // 8 * 8), np.uint8)
    edges(image, low, high, labels)
    assert not labels[[0, -1]].any()
    assert not labels[:, 0].any()
    assert not labels[:, width + 1 :].any()
    return labels


def found_depths(labels: np.ndarray, width: int) -> np.ndarray:
    out = np.empty((labels.shape[0] + 2, width + REACH), np.float32)
    depths(labels, out)
    return out[2:-2, 2 : width + 2]


def scanned(is_edge: np.ndarray) -> np.ndarray:
    """The distances by two scans, value by value."""
    straight, diagonal, knight = STEPS
    moves = [(0, -1, straight), (-1, 0, straight), (-1, -1, diagonal), (-1, 1, diagonal)]
    moves += [(-2, -1, knight), (-2, 1, knight), (-1, -2, knight), (-1, 2, knight)]
    found = np.pad(np.where(is_edge, f32(0), f32(REACH)), 2, constant_values=REACH)
    for _ in range(2):
        for y, x in np.argwhere(np.ones(is_edge.shape)) + 2:
            found[y, x] = min(found[y, x], *(found[y + dy, x + dx] + step for dy, dx, step in moves))
        found = found[::-1, ::-1]
    return found[2:-2, 2:-2]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("low", "high"), [(50, 150), (10, 60), (200, 900)])
def test_edges_are_those_of_opencv(shape: tuple[int, int], low: int, high: int) -> None:
    for image in waters(shape):
        labels = found_edges(image, low, high)
        np.testing.assert_array_equal(labels[1:-1, 1 : shape[1] + 1] == 2, cv2.Canny(image, low, high) > 0)


def test_a_long_way_from_a_strong_edge_is_connected() -> None:
    """The weak outline of a snake hangs on the few strong pixels of its head."""
    image = np.zeros((60, 64), np.uint8)
    for k, y in enumerate(range(4, 52, 8)):
        image[y : y + 4, 4:60] = 20
        image[y : y + 12, slice(56, 60) if k % 2 == 0 else slice(4, 8)] = 20
    image[4:8, 4:8] = 90
    labels = found_edges(image, 30, 300)
    assert (labels == 2).sum() > 20 * (found_edges(image, 300, 300) == 2).sum() > 0
    np.testing.assert_array_equal(labels[1:-1, 1:65] == 2, cv2.Canny(image, 30, 300) > 0)


def test_depths_are_those_of_two_scans() -> None:
    """A distance is the minimum over all edges, so a single edge suffices."""
    labels = np.zeros((47, 48), np.uint8)
    for y, x in [(23, 23), (1, 1), (1, 46), (46, 1), (45, 46), (18, 40)]:
        labels[:] = 0
        labels[y % 46, x] = 2
        np.testing.assert_array_equal(found_depths(labels, 46), scanned(labels[1:-1, 1:47] == 2))


@pytest.mark.parametrize("fraction", [0.3, 0.03, 0.003, 0.0])
def test_depths_among_many_edges(fraction: float) -> None:
    labels = np.zeros((42, 64), np.uint8)
    labels[1:-1, 1:58] = np.where(np.random.default_rng(1).random((40, 57)) < fraction, 2, 0)
    np.testing.assert_array_equal(found_depths(labels, 57), scanned(labels[1:-1, 1:58] == 2))


def test_several_steps_at_once_are_rounded_as_one_by_one() -> None:
    reachable, rest = {f32(0)}, [f32(0)]
    while rest:
        value = rest.pop()
        for step in STEPS:
            if (more := value + step) < REACH and more not in reachable:
                reachable.add(more)
                rest.append(more)
    assert len(reachable) == 769
    for value in reachable:
        one_by_one = value
        for k in range(1, REACH):
            one_by_one += f32(1)
            assert one_by_one >= REACH or one_by_one == value + f32(k)


@with_ipp
@pytest.mark.parametrize("shape", SHAPES)
def test_drops_are_those_of_opencv(shape: tuple[int, int]) -> None:
    emboss = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
    for water in waters(shape):
        depth = cv2.distanceTransform(255 - cv2.Canny(water, 50, 150), cv2.DIST_L2, 5)
        steps = cv2.blur(np.minimum(depth, 20), (3, 3)).astype(np.uint8)
        lit = cv2.blur(cv2.filter2D(cv2.equalizeHist(steps), cv2.CV_8U, emboss), (3, 3))
        shine = water.astype(np.int32) * lit
        gain = f32(0.5) / f32(shine.max()) if shine.any() else f32(0)
        out = np.empty(shape, np.float32)
        framed = np.empty((shape[0] + 4, shape[1] + REACH), np.float32)
        depths(found_edges(water, 50, 150), framed)
        relief(water, framed, 0.5, out)
        np.testing.assert_array_equal(out, shine.astype(np.float32) * gain)


def test_a_field_does_not_depend_on_those_beside_it() -> None:
    fields = np.random.default_rng(2).normal(size=(3, 40, 51))
    together = cpu_ops().water_drops(fields, 0.65, 0.3, 2, 0.68, 0.5)
    for field, drops in zip(fields, together, strict=True):
        np.testing.assert_array_equal(cpu_ops().water_drops(field[None], 0.65, 0.3, 2, 0.68, 0.5)[0], drops)
