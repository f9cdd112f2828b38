"""Models that are loaded in the process that runs them, when they are first needed."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from beaufort._core.arrays import Bytes
from beaufort._core.errors import OptionError
from beaufort.models import Model, ModelSpec, StatefulModel, adapter_of, load_model
from beaufort.models.network import check_unchanged, spec_with_class_count


class LazyModel:
    """A model given as a string and loaded at first use; another process loads it again from the string.

    >>> model = LazyModel("demo:digits")
    >>> model.spec.classes
    10
    """

    def __init__(self, text: str, options: Mapping[str, Any] | None = None) -> None:
        self.text: str | None = text
        self.options = dict(options or {})
        self._model: Model | None = None
        self._spec: ModelSpec | None = None
        self._stateful: bool | None = None

    @classmethod
    def of(cls, model: str | Model | LazyModel) -> LazyModel:
        """Return a lazy model from a string or a loaded model."""
        if isinstance(model, LazyModel):
            return model
        lazy = cls(model if isinstance(model, str) else "")
        if not isinstance(model, str):
            check_unchanged(model)
            lazy.text, lazy._model = None, model
        return lazy

    @property
    def spec(self) -> ModelSpec:
        """Spec of the model; it is kept after `unload`."""
        if self._spec is None:
            self._spec, self._stateful = self.load().spec, isinstance(self.load(), StatefulModel)
        return self._spec

    @property
    def stateful(self) -> bool:
        """Whether the model changes while it predicts; it is kept after `unload`."""
        if self._stateful is None:
            self._stateful = isinstance(self.load(), StatefulModel)
        return self._stateful

    def set_outputs(self, count: int) -> None:
        """Set the number of outputs to that of an earlier run."""
        self._spec = replace(self.spec, classes=count)

    def count_outputs(self, image: Bytes) -> None:
        """Run the model on an image to count its outputs if the spec does not have the number."""
        self._spec = spec_with_class_count(self.load(), image)

    @property
    def device(self) -> str:
        """Device; '' if unknown before the model is loaded."""
        return str(getattr(self._model, "device", "") or self.options.get("device", ""))

    def load(self) -> Model:
        """Return the model, which is loaded at the first call."""
        if self._model is None:
            assert self.text is not None
            self._model = load_model(self.text, **self.options)
        return self._model

    def unload(self) -> None:
        """Free a model given as a string; `load` loads it again. A model given as an object is kept."""
        if self.text is not None:
            self._model = None

    def for_one_thread(self) -> LazyModel:
        """Return the model with one thread, if its loader has the option `threads`."""
        if self.text is None or "threads" in self.options or "threads" not in adapter_of(self.text).options:
            return self
        return LazyModel(self.text, {**self.options, "threads": 1})

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) if self.text is None else {**vars(self), "_model": None}

    def check_pickle(self) -> None:
        """Raise an error if the model cannot be sent to another process."""
        try:
            pickle.dumps(self)
        except Exception as error:  # pickling can raise any error
            raise OptionError(
                f"cannot pickle the model {self.spec.name} for another process ({type(error).__name__}: "
                f"{error}); pass it as a string such as 'python:package.module:factory'"
            ) from None
