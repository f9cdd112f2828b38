"""What every node of a cluster must have before a job starts: looked for on each, told together."""

from __future__ import annotations

import itertools
import pickle
import platform
from collections.abc import Iterator
from typing import Any, NamedTuple

from beaufort.datasets import Problem
from beaufort.errors import OptionError
from beaufort.evaluation.work import Job
from beaufort.store import Store

__all__ = ["Look", "check_nodes", "look_around"]

_PATIENCE_S = 300.0
_TOLD = 10


class Look(NamedTuple):
    """What a node is asked to look for, of things that this machine has."""

    version: str
    python: tuple[str, str]
    digests: tuple[str, ...]
    """Of the models, in their order."""
    places: tuple[tuple[int, int], ...]
    """Pictures that can be read here: the setup, and the place in its data set."""
    recorded: bool
    """Whether the store has a record of this run."""


def check_nodes(job: Job, store: Store, cpus: float, gpus: float) -> None:
    """Raise an error that says what is missing on which node, if anything is.

    Args:
        job: what is to be done.
        store: where answers go; it has been written to.
        cpus: processors that a worker takes.
        gpus: GPUs that a worker takes.
    """
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    listed: Any = ray.nodes  # not typed
    nodes = [node for node in listed() if node["Alive"]]
    able = [node for node in nodes if _fits(node["Resources"], cpus, gpus)]
    if not able:
        offered = ", ".join(f"{_name(node)}: {_count(node, 'CPU')}, {_count(node, 'GPU')}" for node in nodes)
        raise OptionError(
            f"a worker needs {cpus:g} CPUs and {gpus:g} GPUs, and no node of the cluster has them ({offered})"
        )
    packed = ray.put(pickle.dumps((job, store, _wanted(job, store))))
    look = ray.remote(look_around)
    asked = {
        look.options(
            num_cpus=0,
            max_retries=1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        ).remote(packed): node
        for node in able
    }
    missing = []
    for answer, node in asked.items():
        try:
            found = ray.get(answer, timeout=_PATIENCE_S)
        except ray.exceptions.GetTimeoutError:
            found = [f"does not answer within {_PATIENCE_S:g} seconds"]
        except ray.exceptions.RayError as error:
            found = [str(error).strip().splitlines()[-1]]
        missing += [f"node {_name(node)}: {text}" for text in found]
    if missing:
        more = f"\n… and {len(missing) - _TOLD} more" if len(missing) > _TOLD else ""
        raise OptionError(
            "nodes of the cluster lack what the job needs; nothing was started:\n"
            + "\n".join(missing[:_TOLD])
            + more
        )


def _fits(resources: dict[str, Any], cpus: float, gpus: float) -> bool:
    return bool(resources.get("CPU", 0) >= cpus and resources.get("GPU", 0) >= gpus)


def _count(node: dict[str, Any], kind: str) -> str:
    return f"{node['Resources'].get(kind, 0):g} {kind}s"


def _name(node: dict[str, Any]) -> str:
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"


def _wanted(job: Job, store: Store) -> Look:
    from beaufort import __version__

    readable = tuple(
        (number, place)
        for number, setup in enumerate(job.setups)
        for place in dict.fromkeys((0, setup.count // 2, setup.count - 1))
        if not isinstance(setup.pictures(place), Problem)
    )
    digests = tuple(model.spec.digest for model in job.models)
    return Look(__version__, platform.python_version_tuple()[:2], digests, readable, bool(store.runs()))


def look_around(packed: bytes) -> list[str]:
    """What is missing where this runs."""
    from beaufort import __version__

    job, store, wanted = pickle.loads(packed)
    if __version__ != wanted.version:
        return [f"has Beaufort {__version__}, and the job comes from {wanted.version}; install the same"]
    if platform.python_version_tuple()[:2] != wanted.python:
        return [f"has Python {platform.python_version()}, and the job comes from {'.'.join(wanted.python)}"]
    return list(itertools.chain(_models(job, wanted), _pictures(job, wanted), _store(store, wanted)))


def _models(job: Job, wanted: Look) -> Iterator[str]:
    for model, digest in zip(job.models, wanted.digests, strict=True):
        if model.text is None:
            continue  # it travels with the job
        try:
            found = model.load().spec.digest
        except Exception as error:  # whatever an adapter or a library raises
            yield f"the model {model.text!r} cannot be loaded: {error}"
            continue
        if found != digest:
            both = f"digests {found[:12]} and {digest[:12]}"
            yield f"the model {model.text!r} has other weights than here ({both})"
        model.let_go()


def _pictures(job: Job, wanted: Look) -> Iterator[str]:
    told: set[int] = set()
    for number, place in wanted.places:
        setup = job.setups[number]
        try:
            found = setup.pictures(place)
        except Exception as error:  # whatever a data set of anyone's raises
            found = Problem(setup.dataset.ids[place], str(error))
        if isinstance(found, Problem) and number not in told:
            told.add(number)
            yield f"the picture {found.id} of {setup.dataset.name} cannot be read: {found.message}"


def _store(store: Store, wanted: Look) -> Iterator[str]:
    try:
        known = bool(store.runs())
    except Exception as error:  # whatever a store of anyone's raises
        yield f"the store {store.location} cannot be read: {error}"
        return
    if wanted.recorded and not known:
        yield f"the store {store.location} is another one than here: the record of this run is not in it"
