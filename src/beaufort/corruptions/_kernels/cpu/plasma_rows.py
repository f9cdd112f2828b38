"""Diamond-square fractals too large for memory: row by row, drawing the numbers when needed.

The map of an image of 16 × 9000 pixels has 16384² points, of which the image shows a thousandth; but
the smallest and the largest point of all of them set its scale. So every point is made, and none is kept:
a row of a level needs two rows of the level before, and memory holds a few rows of each level. Points are
those of `plasma`, to the last bit.
"""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array
from beaufort._core.compiled import copy_values, fused, inlined, kernel
from beaufort.corruptions._kernels.cpu.philox import philox_block
from beaufort.corruptions.rng import FieldKey

i32, u32, u64, f32 = np.int32, np.uint32, np.uint64, np.float32


_UNIT = f32(2.0**-23)

_SHIFT = u64(32)


@inlined
def _number(word):
    """A word as a number of [-1, 1), as `philox_uniform` makes it."""
    return f32(-1) + _UNIT * f32(i32(word >> u32(8)))


@inlined
def _draw(wobble, y, last_level, blocks, key, field, low, high):
    """The numbers of row `y` of a level: those of its squares, and of the diamonds on rows and on columns.

    A word stands at block v % blocks, run v // blocks. The last level has three runs of its own, one place
    off; all others lie in the first run.
    """
    cells = wobble.shape[1]
    if last_level:
        for x in range(cells):
            block = u32(y * cells + x - 1)
            _, b, c, d = philox_block(block, field, low, high, key[0], key[1])
            wobble[0, x], wobble[1, x], wobble[2, x] = _number(b), _number(c), _number(d)
        if y == 0:
            a, b, c, _ = philox_block(u32(blocks - 1), field, low, high, key[0], key[1])
            wobble[0, 0], wobble[1, 0], wobble[2, 0] = _number(a), _number(b), _number(c)
        return
    for kind in range(3):
        start = cells * cells * (kind + 1) - 1 + y * cells
        for x in range(cells):
            a, _, _, _ = philox_block(u32(start + x), field, low, high, key[0], key[1])
            wobble[kind, x] = _number(a)


@inlined
def _centers(center, here, below, wobble, amplitude):
    """Compute the centers of the squares between two rows."""
    last = len(here) - 1
    quarter = f32(0.25)
    for x in range(last):
        corners = (here[x] + here[x + 1]) + (below[x] + below[x + 1])
        center[x] = fused(amplitude, wobble[x], corners * quarter)
    corners = (here[last] + here[0]) + (below[last] + below[0])
    center[last] = fused(corners, quarter, amplitude * wobble[last])


@inlined
def _even_row(row, here, center, above, wobble, amplitude):
    """Compute a row of the finer map that exists in the coarser one: its points, and one between each two."""
    last = len(here) - 1
    quarter = f32(0.25)
    for x in range(last):
        around = (center[x] + above[x]) + (here[x] + here[x + 1])
        row[2 * x] = here[x]
        row[2 * x + 1] = fused(amplitude, wobble[x], around * quarter)
    around = (center[last] + above[last]) + (here[last] + here[0])
    row[2 * last] = here[last]
    row[2 * last + 1] = fused(amplitude, wobble[last], around * quarter)


@inlined
def _odd_row(row, here, below, center, wobble, amplitude):
    """Compute a row of the finer map between two rows of the coarser one."""
    last = len(here) - 1
    quarter = f32(0.25)
    around = (center[0] + center[last]) + (here[0] + below[0])
    row[0] = fused(amplitude, wobble[0], around * quarter)
    row[1] = center[0]
    for x in range(1, last + 1):
        around = (center[x] + center[x - 1]) + (here[x] + below[x])
        row[2 * x] = fused(amplitude, wobble[x], around * quarter)
        row[2 * x + 1] = center[x]


@kernel
def _plasma_rows(side, amplitudes, k0, k1, field, id_word, out):
    """One fractal; `rows` has, by level, rows of the map with 2^level points a side, which the level refines.

    Slots of `rows`: 0 this row, 1 the next one, 2 the first of all. Slots of `middles`: 0 the centers of
    this row, 1 those of the row above. `waiting[level]` is an odd row that is made and not yet taken.
    """
    levels = len(amplitudes)
    blocks = side * side // 4
    key = (u32(k0), u32(k1))
    number, low_word, high_word = u32(field), u32(id_word), u32(id_word >> _SHIFT)
    starts = np.zeros(levels + 2, np.int64)
    for level in range(levels + 1):
        starts[level + 1] = starts[level] + (1 << level)
    rows = np.zeros((3, starts[levels]), np.float32)
    lasts = np.zeros(starts[levels], np.float32)
    middles = np.zeros((2, starts[levels]), np.float32)
    wobbles = np.zeros((3, side // 2), np.float32)
    fresh = np.zeros(starts[levels + 1], np.float32)
    waiting = np.zeros(starts[levels + 1], np.float32)
    waits = np.zeros(levels, np.bool_)
    at = np.zeros(levels, np.int64)

    # The first rows of each map: the last, 0 and 1 of a level give those of the next.
    for level in range(levels):
        cells = 1 << level
        here = slice(starts[level], starts[level + 1])
        wobble = wobbles[:, :cells]
        first, second = rows[0, here], rows[1, here]
        copy_values(first, rows[2, here])
        last_level = level == levels - 1
        _draw(wobble, cells - 1, last_level, blocks, key, number, low_word, high_word)
        _centers(middles[1, here], lasts[here], first, wobble[0], amplitudes[level])
        if last_level:
            break
        finer = slice(starts[level + 1], starts[level + 2])
        _odd_row(lasts[finer], lasts[here], first, middles[1, here], wobble[2], amplitudes[level])
        _draw(wobble, 0, last_level, blocks, key, number, low_word, high_word)
        _centers(middles[0, here], first, second, wobble[0], amplitudes[level])
        _even_row(rows[0, finer], first, middles[0, here], middles[1, here], wobble[1], amplitudes[level])
        _odd_row(rows[1, finer], first, second, middles[0, here], wobble[2], amplitudes[level])
        copy_values(middles[0, here], middles[1, here])
        copy_values(second, rows[0, here])
        at[level] = 1

    height, width = out.shape
    top = levels - 1
    lowest, highest = f32(0), f32(0)
    for y in range(side):
        level = top  # descend to a level whose rows follow from existing ones, then ascend
        while not waits[level] and 0 < at[level] < (1 << level) - 1:
            level -= 1
        while True:
            cells = 1 << level
            here = slice(starts[level], starts[level + 1])
            finer = fresh[starts[level + 1] : starts[level + 2]]
            left = waiting[starts[level + 1] : starts[level + 2]]
            if waits[level]:
                copy_values(left, finer)
                waits[level] = False
            else:
                this, below = rows[0, here], rows[1, here]
                if at[level] == cells - 1 and cells > 1:
                    below = rows[2, here]
                wobble = wobbles[:, :cells]
                _draw(wobble, at[level], level == top, blocks, key, number, low_word, high_word)
                _centers(middles[0, here], this, below, wobble[0], amplitudes[level])
                _even_row(finer, this, middles[0, here], middles[1, here], wobble[1], amplitudes[level])
                _odd_row(left, this, below, middles[0, here], wobble[2], amplitudes[level])
                copy_values(middles[0, here], middles[1, here])
                copy_values(below, rows[0, here])
                waits[level] = True
                at[level] += 1
            if level == top:
                break
            level += 1
            copy_values(finer, rows[1, starts[level] : starts[level + 1]])
        for x in range(side):
            lowest, highest = min(lowest, finer[x]), max(highest, finer[x])
        if y < height:
            copy_values(finer, out[y])
    scale = f32(1) / (highest - lowest)
    for y in range(height):
        for x in range(width):
            out[y, x] = (out[y, x] - lowest) * scale


def plasma_rows(noise: FieldKey, side: int, decay: float, height: int, width: int) -> Array:
    """Return what `plasma` makes of `philox_uniform(noise, (side² - 1,), -1, 1)`."""
    amplitudes = [f32(10000)]
    while 2 ** len(amplitudes) < side:
        amplitudes.append(f32(amplitudes[-1] / (f32(decay) * f32(decay))))
    out = np.empty((len(noise.ids), height, width), np.float32)
    for word, target in zip(noise.ids, out, strict=True):
        _plasma_rows(side, np.array(amplitudes, np.float32), *noise.key, noise.field, word, target)
    return out
