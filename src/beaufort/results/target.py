"""What a person calls a result: a model of a store, a store of one model, or both at once."""

from __future__ import annotations

from pathlib import Path

from beaufort.results._match import ResultsError
from beaufort.results.open import Results, only_part, open_parts
from beaufort.store import FileStore

_BETWEEN = "::"


def open_target(
    text: str, store: str = "results", *, suite: str | None = None, seed: int | None = None
) -> Results:
    """The results of one model on a suite of one data set; arguments are those of `open_target_parts`."""
    return only_part(open_target_parts(text, store, suite=suite, seed=seed))


def open_target_parts(
    text: str, store: str = "results", *, suite: str | None = None, seed: int | None = None
) -> tuple[Results, ...]:
    """The results of one model, one for each data set of the suite.

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
    parts = open_parts(location, suite=suite, seed=seed, models=[model] if model else None)
    for results in parts:
        if len(results.models) > 1:
            raise ResultsError(
                f"{location} has {len(results.models)} models: {', '.join(results.models[:10])}; name one as "
                f"{location}{_BETWEEN}{results.models[0]}" + "".join(f". {note}" for note in results.notes)
            )
    return parts


def _is_store(text: str) -> bool:
    """Whether a text is the place of a store; a model's name is not."""
    if "://" in text:
        return True
    return Path(text).is_dir() and bool(FileStore(text).pieces())
