"""Models that are loaded where they run, when they are first needed."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.models import Model, ModelSpec, adapter_of, load_model
from beaufort.models.network import check_unchanged, spec_with_class_count


class LazyModel:
    """A model by its text, loaded when it is first asked for; another process loads it again from its text.

    >>> model = LazyModel("demo:digits")
    >>> model.spec.classes
    10
    """

    def __init__(self, text: str, options: Mapping[str, Any] | None = None) -> None:
        self.text: str | None = text
        self.options = dict(options or {})
        self._model: Model | None = None
        self._spec: ModelSpec | None = None

    @classmethod
    def of(cls, model: str | Model | LazyModel) -> LazyModel:
        """A lazy model from a text, or around a model that is loaded already."""
        if isinstance(model, LazyModel):
            return model
        lazy = cls(model if isinstance(model, str) else "")
        if not isinstance(model, str):
            check_unchanged(model)
            lazy.text, lazy._model = None, model
        return lazy

    @property
    def spec(self) -> ModelSpec:
        """The model's spec; it stays known after `unload`."""
        if self._spec is None:
            self._spec = self.load().spec
        return self._spec

    def set_outputs(self, count: int) -> None:
        """Note the number of outputs that an earlier run has counted."""
        self._spec = replace(self.spec, classes=count)

    def count_outputs(self, image: Bytes) -> None:
        """Run the model on an image to count its outputs, where the spec does not say how many it has."""
        self._spec = spec_with_class_count(self.load(), image)

    @property
    def device(self) -> str:
        """Where it runs, '' if that is not known before it is loaded."""
        return str(getattr(self._model, "device", "") or self.options.get("device", ""))

    def load(self) -> Model:
        """The model, loaded at the first call."""
        if self._model is None:
            assert self.text is not None
            self._model = load_model(self.text, **self.options)
        return self._model

    def unload(self) -> None:
        """Free a model that was loaded from text; `load` loads it again. A model given as an object stays."""
        if self.text is not None:
            self._model = None

    def for_one_thread(self) -> LazyModel:
        """The same model, told to use one thread where it can be told."""
        if self.text is None or "threads" in self.options or "threads" not in adapter_of(self.text).options:
            return self
        return LazyModel(self.text, {**self.options, "threads": 1})

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) if self.text is None else {**vars(self), "_model": None}

    def check_pickle(self) -> None:
        """Raise an error if the model cannot be sent to another process."""
        try:
            pickle.dumps(self)
        except Exception as error:  # an object may refuse in its own way
            raise OptionError(
                "with several processes, models must be given as text ('python:package.module:factory'), or "
                f"be objects that can be pickled; {self.spec.name} cannot ({type(error).__name__}: {error})"
            ) from None
