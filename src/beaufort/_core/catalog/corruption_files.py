"""Files of two corruptions: photos of ice, and the matrix of pessimal noise."""

from __future__ import annotations

import io

from beaufort._core.catalog.fetching import Entry, entries, register_asset, register_entry
from beaufort._core.catalog.sources import Source, Url, Wheel
from beaufort._core.pickles import longest_bytes

_MATRIX = "mnist-c/pessimal_noise_matrix.f32"
_COMMIT = "aa075693016b6c8b616271a979854dacbcb45e22"


def _frost_sources(name: str) -> list[Source]:
    folder = "https://raw.githubusercontent.com/bethgelab/imagecorruptions/master/imagecorruptions/frost"
    return [Wheel("imagecorruptions==1.1.2", f"imagecorruptions/frost/{name}"), Url(f"{folder}/{name}")]


def _array_in_npz(content: bytes) -> bytes:
    """Return the bytes of the array `A` of an .npz file."""
    import numpy as np

    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return bytes(stored["A"].tobytes())


register_entry(
    Entry(
        "frost",
        "Photos of ice that the corruption frost blends in",
        "Apache-2.0",
        "imagecorruptions 1.1.2",
        "https://github.com/bethgelab/imagecorruptions",
        tuple(
            f"frost/{name}" for name in ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
        ),
    ),
    _frost_sources,
)
register_asset(
    _MATRIX,
    "Apache-2.0",
    "google-research/mnist-c",
    [
        Url(
            f"https://raw.githubusercontent.com/google-research/mnist-c/{_COMMIT}/pessimal_noise_matrix",
            longest_bytes,
        )
    ],
    mirrored_as="pessimal_noise_matrix.npz",
    unpack=_array_in_npz,
)
entries.register(
    "pessimal-noise",
    Entry(
        "pessimal-noise",
        "Matrix of the corruption pessimal_noise",
        "Apache-2.0",
        "google-research/mnist-c",
        "https://github.com/google-research/mnist-c",
        (_MATRIX,),
    ),
)
