"""The numbers of models on a suite, each with its interval."""

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
    """By group; all intervals hold together."""
    worst: Estimate
    """The accuracy in the group where it is lowest; `n` is the number of images in that group, or of
    clusters of them."""
    worst_name: str


@dataclass(frozen=True, repr=False)
class ModelScores:
    """One model's numbers; fractions, not percent."""

    model: str
    digest: str
    images: int
    """Number of base images that the numbers are computed from."""
    unread: int
    """Images without a prediction under at least one condition."""
    clean: Estimate | None
    """Accuracy on clean images."""
    metrics: Mapping[str, Estimate]
    """The suite's headline numbers, the first one first."""
    corruptions: Mapping[str, Estimate]
    """Error under each corruption, the mean over its severities."""
    ce: Mapping[str, Estimate]
    """Corruption error (CE): the error divided by the baseline's; empty without a baseline."""
    relative_ce: Mapping[str, Estimate]
    """Relative CE: the rise in error over clean images, divided by the baseline's rise."""
    conditions: Mapping[Condition, Estimate]
    """Accuracy under each condition."""
    top5: Mapping[Condition, Estimate]
    """Fraction of images whose true class is among the five most probable."""
    calibration: Mapping[str, Calibration]
    """For clean images and each severity; empty if it was not computed."""
    error_forms: Mapping[str, Linear]
    """By corruption, what each image adds to the error."""
    ce_forms: Mapping[str, Linear]
    """By corruption, what each image adds to CE; empty without a baseline."""
    clean_form: Linear | None = None
    """What each image adds to the clean error; None without clean images."""
    groups: GroupScores | None = None
    """Accuracy in groups of images, if there are groups."""
    movement: Mapping[str, Mapping[str, Estimate]] = field(default_factory=dict)
    """By kind, `flip_probability` or `top5_distance`, how much predictions move over each sequence; empty for
    suites without sequences."""

    @property
    def headline(self) -> Estimate:
        """The suite's first number."""
        return next(iter(self.metrics.values()))

    def __repr__(self) -> str:
        numbers = (f"{metrics[name].title} {metrics[name].shown(one)}" for name, one in self.metrics.items())
        return f"<ModelScores of {self.model}: {', '.join(numbers)}>"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Scores:
    """All numbers of some models on one suite; `print` shows the headline numbers."""

    results: Results
    baseline: ResultBaseline | None
    models: tuple[ModelScores, ...]
    """In the order of the ranking."""
    ranking: tuple[Ranked, ...]
    """By the headline number, in the same order."""
    pairs: Pairs
    """Differences between the models, with what each image adds to them."""
    seeds: tuple[Seeds, ...]
    """Training runs of one recipe with different seeds, if some were named."""
    clusters: int
    """Number of independent units that intervals are computed over: clusters of images, or single images."""
    image_notes: tuple[str, ...]
    """Notes on models of one name and on images that do not count."""
    metric_notes: tuple[str, ...]
    """Other notes: which metrics could not be computed, for instance, and why."""

    @property
    def suite(self) -> Suite:
        return self.results.suite

    @property
    def images(self) -> int:
        """Number of images, the same for all models."""
        return self.models[0].images

    @property
    def level(self) -> float:
        """Of all intervals."""
        return self.pairs.level

    @property
    def notes(self) -> tuple[str, ...]:
        """All notes for the reader."""
        return (*self.image_notes, *self.metric_notes)

    def predictions(self, models: Sequence[str] | None = None) -> SharedPredictions:
        """The predictions that the numbers are computed from; of all models, best first, if None."""
        stored = [self.baseline.name] if self.baseline and self.baseline.stored else []
        chosen = [one.model for one in self.models] if models is None else models
        return SharedPredictions(self.results, chosen, also=stored)

    @property
    def headline(self) -> str:
        """The name of the first metric."""
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
        """Every number as a row of a data frame; the columns are those of `beaufort report --format csv`."""
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
