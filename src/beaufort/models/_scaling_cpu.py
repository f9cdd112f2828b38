"""Scaling of 8-bit values by lookup tables, with Numba: table c of channel `places[c]` gives channel c."""

from __future__ import annotations

from beaufort._core.compiled import exact_kernel


@exact_kernel
def look_up_first(images, tables, places, out):
    """Write values with the channels first."""
    for i in range(images.shape[0]):
        for c in range(tables.shape[0]):
            table, place = tables[c], places[c]
            for y in range(images.shape[1]):
                row, target = images[i, y], out[i, c, y]
                for x in range(images.shape[2]):
                    target[x] = table[row[x, place]]


@exact_kernel
def look_up_last(images, tables, places, out):
    """Write values with the channels last."""
    for i in range(images.shape[0]):
        for y in range(images.shape[1]):
            row, target = images[i, y], out[i, y]
            for x in range(images.shape[2]):
                for c in range(tables.shape[0]):
                    target[x, c] = tables[c, row[x, places[c]]]
