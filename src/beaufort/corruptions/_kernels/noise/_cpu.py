"""Noise with Numba."""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import kernel, to_byte

f32, u8 = np.float32, np.uint8


@kernel
def _add_noise(images, noise, sigma, nearest, out):
    for i in range(images.size):
        out[i] = to_byte(f32(images[i]) + noise[i] * sigma, nearest)


def add_noise(images: Bytes, noise: Array, sigma: float, *, nearest: bool = False) -> Bytes:
    """x + σ·n, σ in units of the whole range."""
    out = np.empty_like(images)
    _add_noise(images.ravel(), noise.ravel(), f32(sigma * 255), nearest, out.ravel())
    return out


@kernel
def _multiply_noise(images, noise, sigma, nearest, out):
    for i in range(images.size):
        value = f32(images[i])
        out[i] = to_byte(value + value * noise[i] * sigma, nearest)


def multiply_noise(images: Bytes, noise: Array, sigma: float, *, nearest: bool = False) -> Bytes:
    """x + x·σ·n."""
    out = np.empty_like(images)
    _multiply_noise(images.ravel(), noise.ravel(), f32(sigma), nearest, out.ravel())
    return out


@kernel
def _replace(images, hits, out):
    for i in range(images.size):
        hit = hits[i]
        out[i] = images[i] if hit == 0 else (u8(255) if hit == 2 else u8(0))


def replace(images: Bytes, hits: Array) -> Bytes:
    """Keep the value where the hit is 0; black where it is 1, white where it is 2."""
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
    """x + f, one field value (0…255) a pixel, the same for all channels."""
    out = np.empty_like(images)
    _add_field(images, field, nearest, out)
    return out


def excess(counts: Array, rate: float, images: Bytes) -> Array:
    """By how much counts / rate is more than x / 255, float32."""
    return (counts / rate - images / 255).astype(np.float32)
