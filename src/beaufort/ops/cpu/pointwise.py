"""Maps of one value or one pixel: noise, haze, color."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from beaufort.arrays import Bytes, Field
from beaufort.ops.cpu._kernel import exact_kernel, kernel
from beaufort.ops.cpu._pixels import to_byte

__all__ = [
    "add_field",
    "add_noise",
    "blend",
    "brighten",
    "brighter",
    "excess",
    "haze",
    "look_up",
    "lower_contrast",
    "mix",
    "multiply_noise",
    "paint",
    "replace",
    "saturate_colors",
    "scale_counts",
    "snowfall",
]

i32, f32, u8 = np.int32, np.float32, np.uint8


@kernel
def _add_noise(images, noise, sigma, nearest, out):
    for i in range(images.size):
        out[i] = to_byte(f32(images[i]) + noise[i] * sigma, nearest)


def add_noise(images: Bytes, noise: Field, sigma: float, *, nearest: bool = False) -> Bytes:
    """x + σ·n, σ in units of the whole range."""
    out = np.empty_like(images)
    _add_noise(images.ravel(), noise.ravel(), f32(sigma * 255), nearest, out.ravel())
    return out


@kernel
def _multiply_noise(images, noise, sigma, nearest, out):
    for i in range(images.size):
        value = f32(images[i])
        out[i] = to_byte(value + value * noise[i] * sigma, nearest)


def multiply_noise(images: Bytes, noise: Field, sigma: float, *, nearest: bool = False) -> Bytes:
    """x + x·σ·n."""
    out = np.empty_like(images)
    _multiply_noise(images.ravel(), noise.ravel(), f32(sigma), nearest, out.ravel())
    return out


@kernel
def _replace(images, hits, out):
    for i in range(images.size):
        hit = hits[i]
        out[i] = images[i] if hit == 0 else (u8(255) if hit == 2 else u8(0))


def replace(images: Bytes, hits: Field) -> Bytes:
    """Keep the value where the hit is 0; black where it is 1, white where it is 2."""
    out = np.empty_like(images)
    _replace(images.ravel(), hits.ravel(), out.ravel())
    return out


@kernel
def _take(table, at, out):
    last = table.size - 1
    for i in range(at.size):
        out[i] = table[min(at[i], last)]


def scale_counts(counts: Field, table: Bytes) -> Bytes:
    """The 8-bit value of each count, the last one's for all counts beyond the table."""
    out = np.empty(counts.shape, u8)
    _take(table, counts.ravel(), out.ravel())
    return out


def look_up(images: Bytes, table: Bytes) -> Bytes:
    """A map given by its 256 values."""
    out = np.empty_like(images)
    _take(table, images.ravel(), out.ravel())
    return out


def mix(images: Sequence[Bytes], weights: Sequence[float]) -> Bytes:
    """The mean of several versions of the same images, rounded; weights are multiples of 1/256."""
    total = np.full(images[0].shape, 128, np.uint16)
    for version, weight in zip(images, weights, strict=True):
        total += version * np.uint16(round(weight * 256))
    return (total >> 8).astype(np.uint8)


@kernel
def _add_field(images, field, nearest, out):
    channels = images.shape[3]
    for i in range(images.shape[0]):
        for y in range(images.shape[1]):
            for x in range(images.shape[2]):
                for c in range(channels):
                    out[i, y, x, c] = to_byte(f32(images[i, y, x, c]) + field[i, y, x], nearest)


def add_field(images: Bytes, field: Field, *, nearest: bool = False) -> Bytes:
    """x + f, one field value (0…255) a pixel, the same for all channels."""
    out = np.empty_like(images)
    _add_field(images, field, nearest, out)
    return out


@exact_kernel
def _blend(image, texture, weight, texture_weight, nearest, out):
    line = image.shape[1] * image.shape[2]
    for y in range(image.shape[0]):
        source = image[y].reshape(line)
        over = texture[y].reshape(line)
        target = out[y].reshape(line)
        for x in range(line):
            target[x] = to_byte(weight * source[x] + texture_weight * over[x], nearest)


def blend(
    images: Bytes,
    textures: Sequence[Bytes],
    crops: NDArray[np.int64],
    weight: float,
    texture_weight: float,
    *,
    nearest: bool = False,
) -> Bytes:
    """a·X + b·F; F is cut from a texture `(h, w, c)`: its number, first row and column for each image.

    In double precision, because the weights are tenths: many sums are whole numbers but for rounding.
    """
    out = np.empty_like(images)
    height, width = images.shape[1:3]
    for image, (number, row, column), target in zip(images, crops.tolist(), out, strict=True):
        crop = np.ascontiguousarray(textures[number][row : row + height, column : column + width])
        _blend(image, crop, float(weight), float(texture_weight), nearest, target)
    return out


def excess(counts: Field, rate: float, images: Bytes) -> Field:
    """By how much counts / rate is more than x / 255, float32."""
    return (counts / rate - images / 255).astype(np.float32)


@kernel
def _haze(images, fields, amount, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    thick = np.empty(line, np.float32)
    for i in range(images.shape[0]):
        brightest = u8(0)
        flat = images[i].reshape(height * line)
        for x in range(flat.size):
            brightest = max(brightest, flat[x])
        top = f32(brightest) / f32(255)
        gain = top / (top + amount)
        veil = gain * amount * f32(255)
        for y in range(height):
            field = fields[i, y]
            if channels == 3:
                for x in range(width):
                    thick[3 * x] = field[x] * veil
                    thick[3 * x + 1] = field[x] * veil
                    thick[3 * x + 2] = field[x] * veil
            else:
                for x in range(width):
                    thick[x] = field[x] * veil
            source = images[i, y].reshape(line)
            target = out[i, y].reshape(line)
            for x in range(line):
                target[x] = to_byte(f32(source[x]) * gain + thick[x], nearest)


def haze(images: Bytes, fields: Field, amount: float, *, nearest: bool = False) -> Bytes:
    """(x + a·P)·M / (M + a) with P in [0, 1] and M the largest value of the image."""
    out = np.empty_like(images)
    _haze(images, fields, f32(amount), nearest, out)
    return out


@kernel
def _lower_contrast(images, factor, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    offset = np.empty(line, np.float32)
    sums = np.empty(line, np.uint32)
    totals = np.empty(channels, np.float64)
    for i in range(images.shape[0]):
        sums[:] = 0
        for y in range(height):
            source = images[i, y].reshape(line)
            for x in range(line):
                sums[x] += np.uint32(source[x])
        totals[:] = 0
        for x in range(line):
            totals[x % channels] += np.float64(sums[x])
        for x in range(line):
            mean = totals[x % channels] / (height * width)
            offset[x] = f32(mean - mean * factor)
        scale = f32(factor)
        for y in range(height):
            source = images[i, y].reshape(line)
            target = out[i, y].reshape(line)
            for x in range(line):
                target[x] = to_byte(f32(source[x]) * scale + offset[x], nearest)


def lower_contrast(images: Bytes, factor: float, *, nearest: bool = False) -> Bytes:
    """(x - μ)·c + μ with μ the mean of the channel."""
    out = np.empty_like(images)
    _lower_contrast(images, factor, nearest, out)
    return out


@kernel
def _brighten(images, ratio, black, out):
    pixels = images.reshape(images.size // 3, 3)
    bright = out.reshape(images.size // 3, 3)
    for i in range(len(pixels)):
        red, green, blue = pixels[i, 0], pixels[i, 1], pixels[i, 2]
        value = max(red, green, blue)
        gain = ratio[value]
        lift = black if value == 0 else f32(0)
        bright[i, 0] = u8(i32(f32(red) * gain + lift))
        bright[i, 1] = u8(i32(f32(green) * gain + lift))
        bright[i, 2] = u8(i32(f32(blue) * gain + lift))


def brighten(images: Bytes, amount: float) -> Bytes:
    """V ← clip(V + c) in HSV, which scales R, G and B by V'/V; black becomes grey."""
    after = np.minimum(np.arange(256) / 255 + amount, 1) * 255
    if images.shape[-1] == 1:
        return look_up(images, after.astype(u8))
    out = np.empty_like(images)
    _brighten(images, brighter(after.tobytes()), f32(after[0]), out)
    return out


@lru_cache(maxsize=32)
def brighter(after: bytes) -> NDArray[np.float32]:
    """V'/V for each V, a hair off where single precision would cut V' off to another level."""
    wanted = np.frombuffer(after, np.float64)[1:]
    value = np.arange(1, 256, dtype=np.float32)
    ratio = (wanted / value).astype(np.float32)
    for _ in range(4):
        made, level = np.trunc(value * ratio), np.trunc(wanted)
        ratio = np.where(made < level, np.nextafter(ratio, f32(np.inf)), ratio)
        ratio = np.where(made > level, np.nextafter(ratio, f32(0)), ratio)
    return np.concatenate([np.zeros(1, np.float32), ratio])


@kernel
def _saturate(images, gain, lift, out):
    pixels = images.reshape(images.size // 3, 3)
    vivid = out.reshape(images.size // 3, 3)
    grey_share = min(max(lift, f32(0)), f32(1))
    for i in range(len(pixels)):
        red, green, blue = f32(pixels[i, 0]), f32(pixels[i, 1]), f32(pixels[i, 2])
        value = max(red, green, blue)
        spread = value - min(red, green, blue)
        if spread > f32(0):
            inverse = value / spread  # 1 / S
            ratio = min(gain + lift * inverse, inverse)
            red = value - (value - red) * ratio
            green = value - (value - green) * ratio
            blue = value - (value - blue) * ratio
        else:
            green = value - value * grey_share
            blue = green
        vivid[i, 0] = to_byte(red, False)
        vivid[i, 1] = to_byte(green, False)
        vivid[i, 2] = to_byte(blue, False)


def saturate_colors(images: Bytes, gain: float, lift: float) -> Bytes:
    """S ← clip(a·S + b) in HSV: R, G, B ← V - (V - R, G, B)·S'/S; greys have hue 0, red."""
    out = np.empty_like(images)
    _saturate(images, f32(gain), f32(lift), out)
    return out


@kernel
def _snowfall(images, layers, mix, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    white = np.empty(line, np.float32)
    flakes = np.empty(line, np.float32)
    share = f32(1) - mix
    for i in range(images.shape[0]):
        for y in range(height):
            source, target = images[i, y].reshape(line), out[i, y].reshape(line)
            layer, turned = layers[i, y], layers[i, height - 1 - y]
            if channels == 3:
                for x in range(width):
                    red, green, blue = f32(source[3 * x]), f32(source[3 * x + 1]), f32(source[3 * x + 2])
                    grey = f32(0.299) * red + f32(0.587) * green + f32(0.114) * blue
                    paled = f32(1.5) * grey + f32(127.5)
                    both = f32(i32(layer[x]) + i32(turned[width - 1 - x]))
                    white[3 * x], white[3 * x + 1], white[3 * x + 2] = paled, paled, paled
                    flakes[3 * x], flakes[3 * x + 1], flakes[3 * x + 2] = both, both, both
            else:
                for x in range(width):
                    white[x] = f32(1.5) * f32(source[x]) + f32(127.5)
                    flakes[x] = f32(i32(layer[x]) + i32(turned[width - 1 - x]))
            for x in range(line):
                value = f32(source[x])
                target[x] = to_byte(mix * value + share * max(value, white[x]) + flakes[x], nearest)


def snowfall(images: Bytes, layers: Bytes, mix: float, *, nearest: bool = False) -> Bytes:
    """Whiten the image, then add the layer and the layer turned by 180°."""
    out = np.empty_like(images)
    _snowfall(images, layers, f32(mix), nearest, out)
    return out


@kernel
def _paint(images, masks, color, cover, nearest, out):
    height, width, channels = images.shape[1:]
    line = width * channels
    kept = np.empty(line, np.float32)
    added = np.empty(line, np.float32)
    for i in range(images.shape[0]):
        for y in range(height):
            source, target, mask = images[i, y].reshape(line), out[i, y].reshape(line), masks[i, y]
            if channels == 3:
                red, green, blue = color[0], color[1], color[2]
                for x in range(width):
                    share = f32(1) - mask[x] if cover else f32(1)
                    kept[3 * x], kept[3 * x + 1], kept[3 * x + 2] = share, share, share
                    added[3 * x] = mask[x] * red
                    added[3 * x + 1] = mask[x] * green
                    added[3 * x + 2] = mask[x] * blue
            else:
                for x in range(width):
                    kept[x] = f32(1) - mask[x] if cover else f32(1)
                    added[x] = mask[x] * color[0]
            for x in range(line):
                target[x] = to_byte(f32(source[x]) * kept[x] + added[x], nearest)


def paint(
    images: Bytes, masks: Field, color: tuple[float, ...], *, cover: bool, nearest: bool = False
) -> Bytes:
    """x + m·color, or x·(1 - m) + m·color where the paint is to `cover`; color in 0…255."""
    out = np.empty_like(images)
    _paint(images, masks, np.array(color, np.float32), cover, nearest, out)
    return out
