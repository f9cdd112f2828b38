"""The metrics of models on a suite, with intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from beaufort.metrics import metrics
from beaufort.metrics.stats import Estimate, Ranked
from beaufort.results.baseline import ResultBaseline
from beaufort.results.calibration import Calibration
from beaufort.results.differences import Pairs, Seeds
from beaufort.results.linear import Linear
from beaufort.results.predictions import SharedPredictions
from beaufort.results.results import Results
from beaufort.suites import Suite
from beaufort.suites.conditions import Condition

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class GroupScores:
    """A model's accuracy over all conditions in each group of images."""

    accuracies: Mapping[str, Estimate]
    """Accuracy by group; the intervals are adjusted for all groups."""
    worst: Estimate
    """Lowest accuracy of a group; `n` is the number of images in that group, or of
    clusters of them."""
    worst_name: str


@dataclass(frozen=True, repr=False)
class ModelScores:
    """The metrics of one model; fractions, not percent."""

    model: str
    digest: str
    images: int
    """Number of base images that the numbers are computed from."""
    unread: int
    """Number of images without a prediction under at least one condition."""
    clean: Estimate | None
    """Accuracy on clean images."""
    metrics: Mapping[str, Estimate]
    """Headline metrics, in the order of the suite."""
    corruptions: Mapping[str, Estimate]
    """Error under each corruption, the mean over its severities."""
    ce: Mapping[str, Estimate]
    """Corruption error (CE): the error divided by the baseline's; empty without a baseline."""
    relative_ce: Mapping[str, Estimate]
    """Relative CE: the increase of the error over clean images, divided by the baseline's increase."""
    conditions: Mapping[Condition, Estimate]
    """Accuracy under each condition."""
    top5: Mapping[Condition, Estimate]
    """Fraction of images whose label is among the five most probable classes."""
    calibration: Mapping[str, Calibration]
    """Calibration on clean images and at each severity; empty if it was not computed."""
    error_forms: Mapping[str, Linear]
    """Contribution of each image to the error, by corruption."""
    ce_forms: Mapping[str, Linear]
    """Contribution of each image to CE, by corruption; empty without a baseline."""
    clean_form: Linear | None = None
    """Contribution of each image to the clean error; None without clean images."""
    groups: GroupScores | None = None
    """Accuracy in groups of images, if there are groups."""
    movement: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """By kind, `flip_probability` or `top5_distance`, how much predictions move over each sequence; empty for
    suites without sequences."""

    @property
    def headline(self) -> Estimate:
        """The first metric of the suite."""
        return next(iter(self.metrics.values()))

    def __repr__(self) -> str:
        numbers = (f"{metrics[name].title} {metrics[name].shown(one)}" for name, one in self.metrics.items())
        return f"<ModelScores of {self.model}: {', '.join(numbers)}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scores:
    """All metrics of some models on one suite; `print` shows the headline metrics."""

    results: Results
    baseline: ResultBaseline | None
    models: tuple[ModelScores, ...]
    """Models in the order of the ranking."""
    ranking: tuple[Ranked, ...]
    """Ranking by the headline metric, in the same order."""
    pairs: Pairs
    """Differences between the models, with the contribution of each image."""
    seeds: tuple[Seeds, ...]
    """Training runs of one recipe with different seeds, if any."""
    clusters: int
    """Number of independent units that intervals are computed over: clusters of images, or single images."""
    image_notes: tuple[str, ...]
    """Notes on models of one name and on omitted images."""
    metric_notes: tuple[str, ...]
    """Other notes, such as metrics that could not be computed."""

    @property
    def suite(self) -> Suite:
        return self.results.suite

    @property
    def images(self) -> int:
        """Number of images, the same for all models."""
        return self.models[0].images

    @property
    def level(self) -> float:
        """Confidence level of all intervals."""
        return self.pairs.level

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes."""
        return (*self.image_notes, *self.metric_notes)

    def predictions(self, models: Sequence[str] | None = None) -> SharedPredictions:
        """Return the predictions of some models, or of all, best first."""
        stored = [self.baseline.name] if self.baseline and self.baseline.stored else []
        chosen = [one.model for one in self.models] if models is None else models
        return SharedPredictions(self.results, chosen, also=stored)

    @property
    def headline(self) -> str:
        """Name of the first metric."""
        return next(iter(self.models[0].metrics))

    @property
    def with_clean(self) -> bool:
        """Whether accuracy on clean images is a number of its own.

        It is not where nothing is done to the images: they may be a shift by themselves.
        """
        return self.models[0].clean is not None and bool(self.suite.families)

    def metric_title(self, name: str) -> str:
        """A metric's title, with the baseline if it divides by one."""
        one = metrics[name]
        if one.unit == "ratio" and self.baseline is not None:
            return f"{one.title} vs {self.baseline.short_name}"
        return one.title

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with a row per number and the columns of `beaufort report --format csv`."""
        from beaufort.results.score_tables import COLUMNS, data_frame, tidy_rows

        columns = zip(*tidy_rows(self), strict=True)
        return data_frame(dict(zip(COLUMNS, columns, strict=True)), integers=["severity"])

    def __repr__(self) -> str:
        names = ", ".join(one.model for one in self.models)
        return f"<Scores of {names} on {self.suite}, {self.images:,} images of {self.results.dataset}>"

    def __str__(self) -> str:
        from beaufort.results.score_tables import scores_text

        return scores_text(self)

    def _repr_html_(self) -> str:
        from beaufort.results.score_tables import scores_html

        return scores_html(self)
