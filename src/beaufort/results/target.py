"""What a person calls a result: a model of a store, a store of one model, or both at once."""

from __future__ import annotations

from pathlib import Path

from beaufort.results.open import Results, ResultsError, open_results
from beaufort.store import FileStore

__all__ = ["open_target"]

_BETWEEN = "::"


def open_target(
    text: str, store: str = "results", *, suite: str | None = None, seed: int | None = None
) -> Results:
    """The results of one model.

    Args:
        text: `STORE::MODEL`; `STORE`, if it has one model; or `MODEL`, one of `store`.
        store: where a model is looked for that comes without one.
        suite: as for `open_results`.
        seed: as for `open_results`.
    """
    location, between, model = text.partition(_BETWEEN)
    if not between:
        location, model = (text, "") if _is_store(text) else (store, text)
    elif not location or not model:
        raise ResultsError(
            f"a result must be STORE{_BETWEEN}MODEL, a store of one model, or a model's name, got {text!r}"
        )
    results = open_results(location, suite=suite, seed=seed, models=[model] if model else None)
    if len(results.models) > 1:
        raise ResultsError(
            f"{location} has {len(results.models)} models: {', '.join(results.models[:10])}; name one as "
            f"{location}{_BETWEEN}{results.models[0]}"
        )
    return results


def _is_store(text: str) -> bool:
    """Whether a text is the place of a store; a model's name is not."""
    if "://" in text:
        return True
    return Path(text).is_dir() and bool(FileStore(text).pieces())
