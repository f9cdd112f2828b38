"""What two corruptions need, in the catalog: pictures of ice, and the matrix of pessimal noise."""

from __future__ import annotations

import io

from beaufort._core.catalog._entries import Asset, Entry, assets, entries
from beaufort._core.catalog._packages import Wheel
from beaufort._core.catalog._sources import Url
from beaufort._core.pickles import longest_bytes


def _register_frost() -> None:
    folder = "https://raw.githubusercontent.com/bethgelab/imagecorruptions/master/imagecorruptions/frost"
    files = {
        "frost1.png": (1_199_930, "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755"),
        "frost2.png": (299_002, "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137"),
        "frost3.png": (299_002, "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504"),
        "frost4.jpg": (36_734, "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e"),
        "frost5.jpg": (155_150, "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2"),
    }
    entry = Entry(
        "frost",
        "Photographs of ice that the corruption frost mixes in",
        "Apache-2.0",
        "imagecorruptions 1.1.2",
        "https://github.com/bethgelab/imagecorruptions",
        tuple(f"frost/{name}" for name in files),
    )
    entries.register(entry.name, entry)
    for name, (size, digest) in files.items():
        asset = Asset(
            f"frost/{name}",
            digest,
            entry.license,
            entry.origin,
            [Wheel("imagecorruptions==1.1.2", f"imagecorruptions/frost/{name}"), Url(f"{folder}/{name}")],
            size=size,
        )
        assets.register(asset.name, asset)


def _register_pessimal_noise() -> None:
    commit = "aa075693016b6c8b616271a979854dacbcb45e22"
    address = f"https://raw.githubusercontent.com/google-research/mnist-c/{commit}/pessimal_noise_matrix"
    asset = Asset(
        "mnist-c/pessimal_noise_matrix.f32",
        "7407685b5cb54d31591bec94ade036deae4cc64ccbd31daf547b35c48d7a5c1b",
        "Apache-2.0",
        "google-research/mnist-c",
        [Url(address, longest_bytes)],
        mirrored_as="pessimal_noise_matrix.npz",
        unpack=_array_in_npz,
        size=153_664,
    )
    assets.register(asset.name, asset)
    entry = Entry(
        "pessimal-noise",
        "The matrix that the corruption pessimal_noise multiplies by",
        asset.license,
        asset.origin,
        "https://github.com/google-research/mnist-c",
        (asset.name,),
    )
    entries.register(entry.name, entry)


def _array_in_npz(content: bytes) -> bytes:
    """The bytes of the array `A` of an .npz file."""
    import numpy as np

    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        return bytes(stored["A"].tobytes())


_register_frost()
_register_pessimal_noise()
