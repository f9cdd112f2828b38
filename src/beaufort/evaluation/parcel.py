"""What is sent to another machine that is to do work: the job, the store, and where and how to open them."""

from __future__ import annotations

import contextlib
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from beaufort._core.errors import OptionError
from beaufort._core.plugins import load_plugins, named_modules
from beaufort.evaluation.work import Job
from beaufort.store import Store


class Contents(NamedTuple):
    """What a worker needs to know of a run."""

    job: Job
    store: Store
    provenance: Mapping[str, Any]


class Parcel(NamedTuple):
    """The contents, packed, and what must be done before they are unpacked."""

    folder: str
    """The working folder: paths of models, data and the store are as seen from it."""
    modules: tuple[str, ...]
    """Plug-ins that were named; the contents may have conditions that they register."""
    packed: bytes


def pack(contents: Contents) -> Parcel:
    """Pack the contents, or raise an error that says what cannot be sent."""
    for model in contents.job.models:
        model.check_pickle()
    try:
        packed = pickle.dumps(contents)
    except Exception as error:  # an object may refuse in its own way
        raise OptionError(
            "with Ray, the data set and the store must be ones that can be pickled, got one that cannot "
            f"({type(error).__name__}: {error})"
        ) from None
    return Parcel(str(Path.cwd()), tuple(named_modules()), packed)


def unpack(parcel: Parcel) -> Contents:
    """The contents, in the folder that they were packed in, if it is there."""
    with contextlib.suppress(OSError):  # on this machine it may not be; then all paths should be absolute
        os.chdir(parcel.folder)
    load_plugins(parcel.modules)
    contents: Contents = pickle.loads(parcel.packed)
    return contents
