"""Edges of 8-bit images and the distance to them, as OpenCV has them, with Numba.

Rows are processed as a whole, so that their loops vectorize. All of it is equal to OpenCV on a processor for
which Intel's library is built in, to the last bit; elsewhere OpenCV's own distances are rounded differently.
"""

from __future__ import annotations

import numpy as np

from beaufort._core.arrays import Array, Bytes
from beaufort._core.compiled import exact_kernel, exact_part, inlined
from beaufort.corruptions._kernels.cpu.vectors import add, mul, shl

i16, i32, u8, u64, f32 = np.int16, np.int32, np.uint8, np.uint64, np.float32

REACH = 20
"""Distance, in pixels, at which depths end."""


@inlined
def _slopes(image, y, sums, drops, across, down, slope):
    """Sobel's slopes of row y, the edge repeated outside, and |dx| + |dy| with a zero at either end."""
    height, width = image.shape
    above, here, below = image[max(y - 1, 0)], image[y], image[min(y + 1, height - 1)]
    for x in range(width):
        sums[x + 1] = i16(i16(above[x]) + 2 * i16(here[x]) + i16(below[x]))
        drops[x + 1] = i16(i16(below[x]) - i16(above[x]))
    sums[0], sums[width + 1] = sums[1], sums[width]
    drops[0], drops[width + 1] = drops[1], drops[width]
    for x in range(width):
        dx = i16(sums[x + 2] - sums[x])
        dy = i16(drops[x] + 2 * drops[x + 1] + drops[x + 2])
        across[x], down[x] = dx, dy
        slope[x + 1] = i16(max(dx, i16(-dx)) + max(dy, i16(-dy)))


@inlined
def _candidates(across, down, above, here, below, low, high, labels):
    """Label 1 where a slope is the steepest on its way across the edge and above `low`, 2 above `high`.

    tan 22.5° is 13573 in 15 bits; tan 67.5° is 2 more. Of two equal neighbors on a row or a column one is an
    edge.
    """
    for x in range(across.size):
        dx, dy, steep = i32(across[x]), i32(down[x]), here[x + 1]
        size_x, size_y = max(dx, i32(-dx)), max(dy, i32(-dy))
        flat, rise = mul(size_x, 13573), shl(size_y, 15)
        on_row = (steep > here[x]) & (steep >= here[x + 2])
        on_column = (steep > above[x + 1]) & (steep >= below[x + 1])
        falling = (steep > above[x]) & (steep > below[x + 2])
        rising = (steep > above[x + 2]) & (steep > below[x])
        steepest = rising if (dx ^ dy) < 0 else falling
        steepest = on_column if rise > add(flat, shl(size_x, 16)) else steepest
        steepest = on_row if rise < flat else steepest
        labels[x] = u8(steepest & (steep > low)) + u8(steepest & (steep > high))


@exact_kernel
def _connect(flat, words, pitch, stack):
    """Replace each 1 that is connected to a 2 by a 2. The outermost labels, of rows of `pitch`, are 0.

    There are few of them, so each checks its neighbors, not each 2. Labels are given as bytes, and
    eight of them as a word.
    """
    for word in range(words.size):
        if words[word] & u64(0x0101010101010101):
            for at in range(8 * word, 8 * word + 8):
                if flat[at] == 1 and _touches(flat, at, pitch):
                    flat[at] = 2
                    stack[0], found = at, 1
                    while found > 0:
                        found -= 1
                        place = stack[found]
                        for k in range(9):
                            near = place + (k // 3 - 1) * pitch + k % 3 - 1
                            if flat[near] == 1:
                                flat[near] = 2
                                stack[found] = near
                                found += 1


@inlined
def _touches(flat, at, pitch):
    above, below = at - pitch, at + pitch
    touches = flat[above - 1] | flat[above] | flat[above + 1] | flat[at - 1] | flat[at + 1]
    return ((touches | flat[below - 1] | flat[below] | flat[below + 1]) & u8(2)) != 0


@exact_kernel
def _label(image, low, high, rows, labels):
    """The candidates of each row, in nine rows of working memory, of which the slopes' are 0."""
    height, width = image.shape
    sums, drops = rows[0], rows[1]
    for y in range(height + 1):  # the slopes of a row, and then the edges of the one above it
        above, here, below = rows[6 + (y - 1) % 3], rows[6 + y % 3], rows[6 + (y + 1) % 3]
        if y < height:
            _slopes(image, y, sums, drops, rows[2 + y % 2, :width], rows[4 + y % 2, :width], below)
        else:
            for x in range(width + 2):
                below[x] = 0
        if y > 0:
            dx, dy, target = rows[3 - y % 2, :width], rows[5 - y % 2, :width], labels[y, 1 : width + 1]
            _candidates(dx, dy, above, here, below, i16(low), i16(high), target)


def edges(image: Bytes, low: int, high: int, labels: Bytes) -> None:
    """Canny's edges of an image: 2 on an edge. Its labels have a frame, and a multiple of 8 in a row."""
    labels.fill(0)
    _label(image, low, high, np.zeros((9, image.shape[1] + 2), np.int16), labels)
    flat = labels.reshape(labels.size)
    _connect(flat, flat.view(np.uint64), labels.shape[1], np.empty(image.size, np.int64))


_DIAGONAL, _KNIGHT = f32(1.4), f32(2.1969)


_ROWS = 16
"""Rows that are worked on as one where none looks at another: what was just written is slow to read again."""


@exact_part
def _leap_right(values, step, out):
    """What is nearest by way of none to three steps of a size to the right; the first places stay."""
    one, two, here, target = values[2 * step :], values[step:], values[3 * step :], out[3 * step :]
    for x in range(here.size):
        nearer = min(here[x], u8(one[x] + u8(step)))
        target[x] = min(nearer, u8(two[x] + u8(2 * step)), u8(values[x] + u8(3 * step)))


@exact_part
def _leap_left(values, step, out):
    """What is nearest by way of none to three steps of a size to the left; the last places stay."""
    size = f32(step)
    one, two, three = values[step:], values[2 * step :], values[3 * step :]
    for x in range(three.size):
        nearer = min(values[x], one[x] + size)
        out[x] = min(nearer, two[x] + f32(2) * size, three[x] + f32(3) * size)


@inlined
def _steps_to_the_right(labels, count, row, spare, out, pitch):
    """How many steps each place of some rows is to the right of the nearest 2, at most 20.

    Rows lie one behind the other, with room for 20 steps before each.
    """
    width, size = pitch - REACH, count * pitch
    for x in range(size):
        row[x] = u8(REACH)
    for y in range(count):
        source, target = labels[y, 1 : width + 1], row[y * pitch + REACH :]
        for x in range(width):
            target[x] = u8(0) if source[x] == 2 else u8(REACH)
    for step, source, target in ((1, row[:size], spare), (4, spare[:size], row)):
        _leap_right(source, step, target)
    here, there = row[REACH:], row[REACH - 16 :]
    for x in range(size - REACH):
        out[x] = f32(min(here[x], u8(there[x] + u8(16))))


@inlined
def _steps_to_the_left(values, row, out):
    """What is nearest by way of steps to the left, in some rows that lie one behind the other."""
    size = values.size
    for step, source, target in ((1, values, out), (4, out[:size], row)):
        _leap_left(source, step, target)
    there = row[16:]
    for x in range(size - 16):
        out[x] = min(row[x], there[x] + f32(16))


@inlined
def _from_rows(along, near, far, out):
    """What is nearest along the row, or by way of the two rows before; those begin two places before it.

    Their steps go straight, across a corner, and like a knight in chess.
    """
    for x in range(out.size):
        depth = min(along[x], near[x + 2] + f32(1))
        depth = min(depth, min(near[x + 1], near[x + 3]) + _DIAGONAL)
        knights = min(near[x], near[x + 4], far[x + 1], far[x + 3])
        out[x] = min(depth, knights + _KNIGHT)


@exact_kernel
def _step_down_and_back(labels, row, more, along, other, pitch, values):
    width, height = pitch - REACH, values.size // pitch - 4
    for x in range(values.size):
        values[x] = f32(REACH)
    for x in range(row.size):
        row[x], more[x], along[x], other[x] = u8(REACH), u8(REACH), f32(REACH), f32(REACH)
    for n in range(2 * height):
        y, back = (n, -pitch) if n < height else (2 * height - 1 - n, pitch)
        k, at = y % _ROWS * pitch, (y + 2) * pitch + 2
        if n < height and k == 0:
            _steps_to_the_right(labels[y + 1 :], min(_ROWS, height - y), row, more, along, pitch)
        elif n == height or (n > height and y % _ROWS == _ROWS - 1):
            for x in range(k + pitch - 3, k + pitch):
                along[x] = f32(REACH)
            _steps_to_the_left(values[at - k : at + pitch], other, along)
        near, far = values[at + back - 2 :], values[at + 2 * back - 2 :]
        _from_rows(along[k:], near, far, values[at : at + width])


def depths(labels: Bytes, out: Array) -> None:
    """How far each pixel is from the nearest 2, at most 20, float32.

    It is measured in steps of 1 to a side, 1.4 across a corner, and 2.1969 like a knight in chess. OpenCV
    goes over the pixels twice, down and to the right, and back. Here the steps along rows are taken before
    the others, on the way down those to the right and on the way back those to the left, which finds the same
    ways, rounded in the same order. Steps of 1 are taken several at a time: no sum of up to 20 that these
    three make is rounded differently then.

    Args:
        labels: as `edges` makes them.
        out: `(h + 4, w + 20)`, the depths from the third row and column on, and 20 around them.
    """
    pitch = out.shape[1]
    row, more = np.empty((2, _ROWS * pitch), np.uint8)
    along, other = np.empty((2, _ROWS * pitch), np.float32)
    _step_down_and_back(labels, row, more, along, other, pitch, out.reshape(out.size))
