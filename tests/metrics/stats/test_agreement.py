"""Agreement beyond chance, compared with other implementations."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort._core.errors import OptionError
from beaufort.metrics.stats import cohen_kappa, fleiss_kappa, krippendorff_alpha

FEW = 500


def ratings(seed: int, raters: int, categories: int, images: int = 80) -> NDArray[np.int64]:
    """Return ratings of people who are mostly right, `(images, raters)`."""
    rng = np.random.default_rng(seed)
    expected = rng.integers(0, categories, images)
    noise = rng.integers(0, categories, (images, raters))
    return np.where(rng.random((images, raters)) < 0.6, expected[:, None], noise)


def counted(outputs: NDArray[np.int64], categories: int) -> NDArray[np.int64]:
    return np.stack([(outputs == one).sum(axis=1) for one in range(categories)], axis=1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("categories", [2, 3])
def test_kappas_are_those_of_statsmodels(seed: int, categories: int) -> None:
    reference = pytest.importorskip("statsmodels.stats.inter_rater", reason="statsmodels is not installed")
    predicted = ratings(seed, 3, categories)
    fleiss = fleiss_kappa(counted(predicted, categories), resamples=FEW)
    assert fleiss is not None
    assert fleiss.value == pytest.approx(reference.fleiss_kappa(counted(predicted, categories)))
    a, b = predicted[:, 0], predicted[:, 1]
    joint = np.zeros((categories, categories))
    np.add.at(joint, (a, b), 1)
    expected = reference.cohens_kappa(joint)
    cohen = cohen_kappa(a, b, categories=categories, resamples=FEW)
    assert cohen is not None
    assert cohen.value == pytest.approx(expected.kappa)
    # The interval is near theirs, which rests on a normal approximation.
    assert cohen.low == pytest.approx(expected.kappa_low, abs=0.06)
    assert cohen.high == pytest.approx(expected.kappa_upp, abs=0.06)


@pytest.mark.parametrize("seed", range(4))
def test_alpha_is_that_of_krippendorff(seed: int) -> None:
    reference = pytest.importorskip("krippendorff", reason="krippendorff is not installed")
    rng = np.random.default_rng(seed)
    predicted = ratings(seed, 4, 3).astype(float)
    predicted[rng.random(predicted.shape) < 0.4] = np.nan  # not everybody rated every image
    table = np.stack([(predicted == one).sum(axis=1) for one in range(3)], axis=1)
    found = krippendorff_alpha(table, resamples=FEW)
    assert found is not None
    expected = reference.alpha(reliability_data=predicted.T, level_of_measurement="nominal")
    assert found.value == pytest.approx(expected)
    assert found.low < found.value < found.high


def test_intervals_cover_the_true_value() -> None:
    """Two people who see the truth with chance 0.6 agree by a kappa of 0.36; 19 of 20 intervals say so."""
    covered = 0
    for seed in range(100):
        predicted = ratings(seed, 2, 2, images=60)
        found = cohen_kappa(predicted[:, 0], predicted[:, 1], resamples=FEW)
        assert found is not None
        covered += found.low <= 0.36 <= found.high
    assert covered >= 90


def test_perfect_agreement_is_no_certainty() -> None:
    found = fleiss_kappa([[3, 0], [0, 3]] * 5, resamples=FEW)
    assert found is not None
    assert found.value == 1
    assert found.low < 0.95


def test_constant_ratings_have_no_agreement() -> None:
    assert fleiss_kappa([[3, 0], [3, 0]]) is None
    assert cohen_kappa([1, 1], [1, 1]) is None
    assert krippendorff_alpha([[2, 0], [1, 0]]) is None
    assert krippendorff_alpha([[1, 0], [0, 1]]) is None  # no image has two ratings


def test_bad_input() -> None:
    with pytest.raises(OptionError, match=r"ratings.* at least 2.* 2 to 3"):
        fleiss_kappa([[2, 0], [3, 0]])
    with pytest.raises(OptionError, match=r"0 to 1.* 0 to 2"):
        cohen_kappa([0, 2], [0, 1])
    with pytest.raises(OptionError, match=r"got 2 and 3"):
        cohen_kappa([0, 1], [0, 1, 1])
    with pytest.raises(OptionError, match=r"non-negative integers, got -1"):
        krippendorff_alpha([[-1, 2]])
