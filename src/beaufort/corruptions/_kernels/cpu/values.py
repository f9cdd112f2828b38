"""Look-ups, mixtures, noise, textures and the way back to 8 bit, with Numba and NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import exact_kernel, kernel, to_byte

i32, f32, u8, u16 = np.int32, np.float32, np.uint8, np.uint16


@kernel
def _to_bytes(values, nearest, out):
    for i in range(values.size):
        out[i] = to_byte(values[i], nearest)


def to_bytes(values: NDArray[np.float32], *, nearest: bool = False) -> Bytes:
    out = np.empty(values.shape, u8)
    _to_bytes(values.ravel(), nearest, out.ravel())
    return out


@kernel
def _take(table, at, out):
    last = table.size - 1
    for i in range(at.size):
        out[i] = table[min(at[i], last)]


def look_up(values: Array, table: Bytes) -> Bytes:
    out = np.empty(values.shape, u8)
    _take(table, values.ravel(), out.ravel())
    return out


@kernel
def _add_weighted(image, weight, total):
    for i in range(total.size):
        total[i] += u16(image[i]) * weight


@kernel
def _mix_last(total, image, weight, out):
    for i in range(total.size):
        out[i] = u8((total[i] + u16(image[i]) * weight) >> u16(8))


def mix(images: Sequence[Bytes], weights: Sequence[float]) -> Bytes:
    flat = [np.ascontiguousarray(version).ravel() for version in images]
    total = np.full(flat[0].shape, 128, u16)
    out = np.empty(images[0].shape, u8)
    parts = [(version, u16(round(weight * 256))) for version, weight in zip(flat, weights, strict=True)]
    for version, weight in parts[:-1]:
        _add_weighted(version, weight, total)
    _mix_last(total, *parts[-1], out.ravel())
    return out


@kernel
def _add_noise(images, noise, sigma, nearest, out):
    for i in range(images.size):
        out[i] = to_byte(f32(images[i]) + noise[i] * sigma, nearest)


def add_noise(images: Bytes, noise: Array, sigma: float, *, nearest: bool = False) -> Bytes:
    out = np.empty_like(images)
    _add_noise(images.ravel(), noise.ravel(), f32(sigma * 255), nearest, out.ravel())
    return out


@kernel
def _multiply_noise(images, noise, sigma, nearest, out):
    for i in range(images.size):
        value = f32(images[i])
        out[i] = to_byte(value + value * noise[i] * sigma, nearest)


def multiply_noise(images: Bytes, noise: Array, sigma: float, *, nearest: bool = False) -> Bytes:
    out = np.empty_like(images)
    _multiply_noise(images.ravel(), noise.ravel(), f32(sigma), nearest, out.ravel())
    return out


@kernel
def _replace(images, hits, out):
    for i in range(images.size):
        hit = hits[i]
        out[i] = images[i] if hit == 0 else (u8(255) if hit == 2 else u8(0))


def replace(images: Bytes, hits: Array) -> Bytes:
    out = np.empty_like(images)
    _replace(images.ravel(), hits.ravel(), out.ravel())
    return out


@kernel
def _add_field(images, field, nearest, out):
    channels = images.shape[3]
    for i in range(images.shape[0]):
        for y in range(images.shape[1]):
            for x in range(images.shape[2]):
                for c in range(channels):
                    out[i, y, x, c] = to_byte(f32(images[i, y, x, c]) + field[i, y, x], nearest)


def add_field(images: Bytes, field: Array, *, nearest: bool = False) -> Bytes:
    out = np.empty_like(images)
    _add_field(images, field, nearest, out)
    return out


@kernel
def _excess(counts, images, of_counts, of_values, out):
    for i in range(counts.size):
        out[i] = f32(of_counts[counts[i]] - of_values[images[i]])


def excess(counts: Array, rate: float, images: Bytes) -> Array:
    out = np.empty(counts.shape, np.float32)
    of_counts = np.arange(int(counts.max(initial=0)) + 1) / rate
    _excess(counts.ravel(), images.ravel(), of_counts, np.arange(256) / 255, out.ravel())
    return out


@exact_kernel
def _blend(image, texture, row, column, weight, texture_weight, nearest, out):
    height, line = image.shape[0], image.shape[1] * image.shape[2]
    sources, targets = image.reshape(height, line), out.reshape(height, line)
    values = texture.reshape(texture.size)
    for y in range(height):
        begin = ((row + y) * texture.shape[1] + column) * image.shape[2]
        source, over, target = sources[y], values[begin : begin + line], targets[y]
        for x in range(line):
            value = weight * source[x] + texture_weight * over[x]
            whole = i32(np.rint(value) if nearest else value)
            target[x] = np.uint8(min(max(whole, i32(0)), i32(255)))  # faster than to clip the value


def blend(
    images: Bytes,
    textures: Sequence[Bytes],
    crops: NDArray[np.int64],
    weight: float,
    texture_weight: float,
    *,
    nearest: bool = False,
) -> Bytes:
    out = np.empty_like(images)
    whole = [np.ascontiguousarray(texture) for texture in textures]
    for image, (number, row, column), target in zip(images, crops.tolist(), out, strict=True):
        _blend(image, whole[number], row, column, float(weight), float(texture_weight), nearest, target)
    return out
