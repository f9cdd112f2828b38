"""Several models on the images that all of them have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from beaufort.results._match import ResultsError
from beaufort.results.answers import Answers
from beaufort.results.open import Results


class SharedAnswers(Mapping[str, Answers]):
    """Models' answers to the images that all of them have; each is read when asked for."""

    def __init__(self, results: Results, models: Sequence[str], also: Sequence[str] = ()) -> None:
        """The images are those that the models `also` named have, too."""
        self._results = results
        self._models = tuple(dict.fromkeys(models))
        first = results.answers(self._models[0]).ids
        shared = set(first)
        self._shown: dict[str, int] = {}
        self._order: list[str] | None = None
        for name in (*self._models, *also):
            answers = results.answers(name)
            self._shown[name] = len(answers) + answers.unread + answers.unlabeled
            if (ids := answers.ids) != first:
                shared.intersection_update(ids)
                self._order = [image for image in first if image in shared]
        if not shared:
            raise ResultsError(
                f"{', '.join(self._models)} have no image in common; evaluate all of them on the same images"
            )

    @property
    def models(self) -> tuple[str, ...]:
        return self._models

    def notes(self) -> tuple[str, ...]:
        """A note if some models were shown more images than others, as only what all were shown counts."""
        fewest, most = (choose(self._shown, key=self._shown.__getitem__) for choose in (min, max))
        if self._shown[fewest] == self._shown[most]:
            return ()
        return (
            f"Only images that all of these models were shown count: {fewest} was shown "
            f"{self._shown[fewest]:,}, {most} {self._shown[most]:,}.",
        )

    def __getitem__(self, model: str) -> Answers:
        if model not in self._models:
            raise KeyError(model)
        answers = self._results.answers(model)
        if self._order is None:
            return answers
        places = {image: place for place, image in enumerate(answers.ids)}
        return answers.take(np.array([places[image] for image in self._order]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._models)

    def __len__(self) -> int:
        return len(self._models)
