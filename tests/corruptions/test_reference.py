"""Given the random numbers of the published programs, the pixels are theirs, as exactly as recorded.

`tests/golden/gate.csv` has, for every output, how many values differ from the published program's and by how
much at most, as it was measured when the file was made. Neither may grow, by anything. The pack in
`tests/golden` is compared in every clone; all outputs are where the folder that `BEAUFORT_SHARED` names is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from golden_data import PACK, Count, Entry, from_folder, from_pack, measure, read_gate

from beaufort import get_corruption_names
from beaufort.corruptions import corruptions

PHOTOS = ("imagenet", "tiny", "cifar")


@cache
def packed() -> dict[tuple[str, str], list[Entry]]:
    """The outputs of the pack by scale and corruption."""
    return _sorted(from_pack())


@cache
def full(folder: Path) -> dict[tuple[str, str], list[Entry]]:
    """All outputs by scale and corruption."""
    return _sorted(from_folder(folder))


def _sorted(entries: Iterator[Entry]) -> dict[tuple[str, str], list[Entry]]:
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in entries:
        found.setdefault((entry.scale, entry.corruption), []).append(entry)
    return found


def passes(count: Count, allowed: Count) -> bool:
    """Return whether a comparison is no worse than the recorded one."""
    assert count.values == allowed.values
    return count.differ <= allowed.differ and count.largest <= allowed.largest


def check(entries: list[Entry], data: str) -> None:
    gate = read_gate()
    for entry in entries:
        count, allowed = measure(entry), gate[entry.key, data]
        assert passes(count, allowed), f"{entry.key}: {count}, recorded was {allowed}"


CASES = [(scale, name) for scale in PHOTOS for name in get_corruption_names("all")]
CASES += [("mnist", name) for name in get_corruption_names("mnist-c-all")]
BAR = [("imagenet", name) for name in get_corruption_names("imagenet-c-bar")]
BAR += [("cifar", name) for name in get_corruption_names("cifar10-c-bar")]


@pytest.mark.parametrize(("scale", "name"), CASES)
def test_packed_outputs(scale: str, name: str) -> None:
    entries = packed()[scale, name]
    severities = {entry.severity for entry in entries}
    assert severities == ({None} if scale == "mnist" else {1, 2, 3, 4, 5})
    check(entries, "packed")


@pytest.mark.parametrize(("scale", "name"), CASES)
def test_all_outputs(shared: Path, scale: str, name: str) -> None:
    entries = full(shared / "golden")[scale, name]
    assert len(entries) == {"imagenet": 8, "cifar": 20, "tiny": 10, "mnist": 1}[scale]
    check(entries, "full")


@pytest.mark.parametrize(("scale", "name"), BAR)
def test_outputs_of_c_bar(shared: Path, scale: str, name: str) -> None:
    entries = full(shared / "golden")[scale, name]
    assert len(entries) == {"imagenet": 3, "cifar": 20}[scale]
    check(entries, "full")
    assert max(measure(entry).differ / entry.wanted.size for entry in entries) < 0.01


def test_the_pack_is_what_the_folder_has(shared: Path) -> None:
    for case, entries in packed().items():
        whole = {entry.key: entry for entry in full(shared / "golden")[case]}
        for entry in entries:
            count, rows = entry.wanted.shape[:2]
            assert np.array_equal(entry.wanted, whole[entry.key].wanted[:count, :rows])
            assert np.array_equal(entry.images, whole[entry.key].images[:count])
            assert entry.seeds == whole[entry.key].seeds[:count]


def test_every_line_of_the_gate_is_checked_and_none_allows_more_than_one_level() -> None:
    gate = read_gate()
    in_pack = {entry.key for entries in packed().values() for entry in entries}
    assert {key for key, data in gate if data == "packed"} == in_pack
    assert len(in_pack) == 133 + 190 + 285 + 31
    assert {key for key, data in gate if data == "full"} > in_pack
    assert max(count.largest for count in gate.values()) == 1


def test_golden_files_stay_small() -> None:
    assert sum(path.stat().st_size for path in PACK.parent.iterdir()) < 8_000_000


ROUNDED = ("gaussian_noise", "speckle_noise", "defocus_blur", "zoom_blur", "snow", "frost", "fog", "contrast")
"""Corruptions whose recipe for digits is that for photos, but rounded instead of cut off."""


@pytest.mark.parametrize("scale", PHOTOS)
@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_instead_of_cutting_off_is_noticed(name: str, scale: str) -> None:
    gate = read_gate()
    rounded = corruptions[name].recipes["mnist"].render
    for entry in packed()[scale, name]:
        choice = entry.choose()
        recipe = choice.recipe.__class__(**{**vars(choice.recipe), "render": rounded})
        count = measure(entry, choice._replace(recipe=recipe))
        assert not passes(count, gate[entry.key, "packed"]), entry.key


@pytest.mark.parametrize("name", ["snow", "glass_blur", "motion_blur", "impulse_noise"])
def test_a_batch_continues_the_random_stream(shared: Path, name: str) -> None:
    """Successive draws of one generator, as the published scripts make them: the stored statistics follow."""
    path = shared / "golden" / "cifar_c_32"
    stored, manifest = np.load(path.with_suffix(".npz")), json.loads(path.with_suffix(".json").read_text())
    entry = f"{name}/3/astronaut"
    seed = 500_000_000 + manifest["seeds"][entry]
    batch = np.stack([stored["inputs"][0]] * 256)
    draws = corruptions[name](batch, 3, seed=seed, scale="cifar", stream="reference")
    ours = draws.reshape(256, -1, 3).mean(axis=1)
    assert np.abs(ours - stored[f"stat/{entry}/draw_mean"].reshape(ours.shape)).max() < 0.3
