"""The generator is Philox, and its fields have the distributions they claim."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from beaufort._core.errors import OptionError
from beaufort.corruptions._kernels import cpu_ops
from beaufort.corruptions._kernels.cpu.philox import philox_block
from beaufort.corruptions.rng import FieldKey, Key, Keyed, ReferenceStream, id_words

OPS: Any = cpu_ops()
KEY = Key.of(0, "test", 1, 3)
IDS = np.arange(4, dtype=np.uint64)


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_known_values(counter: tuple[int, ...], key: tuple[int, ...], words: tuple[int, ...]) -> None:
    """The test vectors that the generator's authors published."""
    assert tuple(philox_block(*map(np.uint32, counter), *map(np.uint32, key))) == words


def test_layout() -> None:
    """Word j of block b is value j·⌈m/4⌉ + b, with the counter (block, field, id)."""
    image_id, field, size = (7 << 32) | 5, 3, 10
    row = OPS.philox_words(FieldKey(KEY, np.array([image_id], np.uint64), field), (size,))[0]
    blocks = 3
    for b in range(blocks):
        words = philox_block(*map(np.uint32, (b, field, 5, 7)), *map(np.uint32, KEY))
        for j, word in enumerate(words):
            if j * blocks + b < size:
                assert row[j * blocks + b] == word


@given(st.integers(1, 60), st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=6))
def test_a_field_does_not_depend_on_its_company(size: int, ids: list[int]) -> None:
    words = id_words(ids)
    together = OPS.philox_words(FieldKey(KEY, words, 0), (size,))
    for i in range(len(ids)):
        assert np.array_equal(together[i], OPS.philox_words(FieldKey(KEY, words[i : i + 1], 0), (size,))[0])


def test_normal() -> None:
    sample = OPS.philox_normal(FieldKey(KEY, IDS, 0), (250_000,)).ravel()
    assert stats.kstest(sample.astype(np.float64), "norm").pvalue > 1e-4
    assert abs(stats.kurtosis(sample)) < 0.02
    assert np.abs(sample).max() > 4.5
    pairs = sample.reshape(4, 4, -1)[:, :2]  # the two normals of one Box-Muller pair
    assert abs(np.corrcoef(pairs[:, 0].ravel(), pairs[:, 1].ravel())[0, 1]) < 5e-3


def test_uniform() -> None:
    sample = OPS.philox_uniform(FieldKey(KEY, IDS, 1), (100_000,), -3, 5).ravel()
    assert sample.min() >= -3
    assert sample.max() < 5
    assert stats.kstest((sample.astype(np.float64) + 3) / 8, "uniform").pvalue > 1e-4


def test_bernoulli_and_impulses() -> None:
    for fraction in (0.0, 0.03, 0.5, 1.0):
        coins = OPS.philox_bernoulli(FieldKey(KEY, IDS, 2), (100_000,), fraction)
        assert abs(coins.mean() - fraction) < 5 * np.sqrt(0.25 / coins.size)
    hits = OPS.philox_impulses(FieldKey(KEY, IDS, 2), (100_000,), 0.3)
    counts = np.bincount(hits.ravel(), minlength=3)
    assert stats.chisquare(counts, hits.size * np.array([0.7, 0.15, 0.15])).pvalue > 1e-4


@pytest.mark.parametrize(("low", "high"), [(0, 2), (-3, 3), (0, 27), (0, 6001)])
def test_integers(low: int, high: int) -> None:
    sample = OPS.philox_integers(FieldKey(KEY, IDS, 3), (60_000,), low, high).ravel()
    assert (sample.min(), sample.max()) == (low, high - 1)
    assert stats.chisquare(np.bincount(sample - low, minlength=high - low)).pvalue > 1e-4


def test_integers_by_image() -> None:
    high = np.array([1, 5, 100, 3])
    sample = OPS.philox_integers(FieldKey(KEY, IDS, 3), (5_000,), 0, high)
    assert np.array_equal(sample.max(axis=1), high - 1)


@pytest.mark.parametrize("rate", [3, 12, 60, 500])
@pytest.mark.parametrize("value", [1, 17, 128, 255])
def test_poisson(rate: float, value: int) -> None:
    images = np.full((4, 1, 50_000, 1), value, np.uint8)
    counts = OPS.philox_poisson(FieldKey(KEY, IDS, 4), images, rate).ravel()
    mean = rate * value / 255
    assert abs(counts.mean() - mean) < 5 * np.sqrt(mean / counts.size)
    most = int(stats.poisson.isf(1e-4, mean)) + 1
    expected = stats.poisson.pmf(np.arange(most), mean) * counts.size
    usual = expected > 10
    observed = np.bincount(counts, minlength=most)[:most]
    rest = [counts.size - observed[usual].sum(), counts.size - expected[usual].sum()]
    if rest[1] < 5:
        rest = [0.0, 0.0]
    sums = np.append(observed[usual], rest[0]), np.append(expected[usual], rest[1])
    statistic = (np.square(sums[0] - sums[1])[sums[1] > 0] / sums[1][sums[1] > 0]).sum()
    assert stats.chi2.sf(statistic, usual.sum()) > 1e-5


def test_black_stays_black_under_poisson() -> None:
    assert not OPS.philox_poisson(FieldKey(KEY, IDS, 4), np.zeros((4, 8, 8, 1), np.uint8), 60).any()


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 5, 1), (7, 9, 3), (25, 41, 1), (64, 65, 3)])
def test_poisson_levels_are_the_tables_entries_for_the_counts(shape: tuple[int, ...]) -> None:
    """Sizes near multiples of four numbers, and near those drawn at a time."""
    images = np.random.default_rng(0).integers(0, 256, (4, *shape), np.uint8)
    table = np.random.default_rng(1).integers(0, 256, 9, np.uint8)
    for rate in (3, 60.5):
        counts = OPS.philox_poisson(FieldKey(KEY, IDS, 4), images, rate)
        levels = OPS.philox_levels(FieldKey(KEY, IDS, 4), images, rate, table)
        assert np.array_equal(levels, OPS.look_up(counts, table))


def test_fields_are_independent() -> None:
    random = Keyed(KEY, IDS, OPS)
    one, other = random.normal((50_000,)), random.normal((50_000,))
    assert abs(np.corrcoef(one.ravel(), other.ravel())[0, 1]) < 0.01
    assert abs(np.corrcoef(one[0], one[1])[0, 1]) < 0.02


def test_keys_differ_in_every_part() -> None:
    keys = {
        Key.of(seed, name, version, severity)
        for seed in (0, 1, -1, 2**70)
        for name in ("fog", "snow")
        for version in (1, 2)
        for severity in (1, 2)
    }
    assert len(keys) == 32


def test_ids() -> None:
    assert id_words([3, np.int64(3)]).tolist() == [3, 3]  # type: ignore[list-item]
    assert id_words(["3"])[0] != 3
    assert id_words(["a"])[0] >> np.uint64(63) == 1
    for wrong in (-1, 2**63, True, 1.5, None):
        with pytest.raises(OptionError, match="id"):
            id_words([wrong])  # type: ignore[list-item]


def test_ids_that_come_again_as_a_tuple() -> None:
    """Words of strings are cached; numbers are checked each time, because `True` equals 1."""
    texts = ("a", "b", "c")
    for _ in range(2):
        assert id_words(texts).tolist() == id_words(list(texts)).tolist()
        assert id_words(("a", 1)).tolist() == id_words(["a", 1]).tolist()
        id_words(texts)[:] = 0  # an array of its own
        with pytest.raises(OptionError, match="id"):
            id_words(("a", True))


def test_content_ids() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (200, 17, 19, 3)).astype(np.uint8)
    ids = OPS.content_ids(images)
    assert len(set(ids.tolist())) == 200
    assert np.array_equal(OPS.content_ids(images[::-1].copy()), ids[::-1])
    for place in ((0, 0, 0), (16, 18, 2), (8, 9, 1)):
        changed = images[:1].copy()
        changed[(0, *place)] ^= 1
        assert OPS.content_ids(changed)[0] != ids[0]
    assert OPS.content_ids(images[:0]).shape == (0,)


def test_reference_is_numpys_legacy_stream() -> None:
    random, state = ReferenceStream(5), np.random.RandomState(5)
    assert np.array_equal(random.normal((3, 2), np.float64)[0], state.standard_normal((3, 2)))
    assert np.array_equal(random.uniform((4,), -1, 1, np.float64)[0], state.uniform(-1, 1, 4))
    assert np.array_equal(random.integers((4,), -2, 2)[0], state.randint(-2, 2, 4))
    image = np.full((1, 2, 2, 1), 200, np.uint8)
    assert np.array_equal(random.poisson(image, 60), state.poisson(image / 255 * 60))
    table = np.arange(50, dtype=np.uint8)
    levels = np.minimum(state.poisson(image / 255 * 60), 49)
    assert np.array_equal(random.poisson_levels(image, 60, table), levels)


@pytest.mark.parametrize("seed", [-1, 1 << 32, None, True, [1, 2], 1.0, "1"])
def test_seeds_that_the_reference_stream_rejects(seed: object) -> None:
    """NumPy takes None for any seed at all, True for 1 and lists for seeds."""
    with pytest.raises(OptionError, match=r"seed.*integer"):
        ReferenceStream(seed)  # type: ignore[arg-type]
