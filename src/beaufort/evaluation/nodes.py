"""What every node of a cluster must have before a job starts: looked for on each, told together."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from beaufort._core.errors import OptionError
from beaufort.data import Problem
from beaufort.evaluation.parcel import Contents, Parcel, unpack
from beaufort.evaluation.work import Job
from beaufort.store import Store

Node = dict[str, Any]
"""As Ray describes it."""

_PATIENCE_S = 300.0
"""How long all nodes together may take to answer."""
_MODELS_S = 120.0
"""How long a node looks at models; what is wrong with others is told when a worker loads them."""
_TOLD = 10
_NOT_THERE = "Beaufort cannot be imported"


class NodeNeeds(NamedTuple):
    """What a node is asked to look for, of things that this machine has."""

    digests: tuple[str, ...]
    """Of the models, in their order."""
    places: tuple[tuple[int, int], ...]
    """Pictures that can be read here: the setup, and the place in its data set."""
    recorded: bool
    """Whether the store has a record of this run."""
    start: int = 0
    """The model that is looked at first; nodes begin at different ones, if there are too many for each."""


def check_nodes(contents: Contents, parcel: Any, cpus: float, gpus: float) -> None:
    """Raise an error that says what is missing on which node, if anything is.

    Args:
        contents: what is to be done; the store has a record of the run.
        parcel: Ray's reference to them, packed.
        cpus: processors that a worker takes.
        gpus: GPUs that a worker takes.
    """
    nodes = _nodes()
    able = [node for node in nodes if _fits(node["Resources"], cpus, gpus)]
    if not able:
        offered = ", ".join(f"{_name(node)}: {_count(node, 'CPU')}, {_count(node, 'GPU')}" for node in nodes)
        raise OptionError(
            f"a worker needs {cpus:g} CPUs and {gpus:g} GPUs, and no node of the cluster has them ({offered})"
        )
    others = _answers(_versions_there(), [()] * len(able), able, 0)
    missing = list(_told(able, map(_other_version, others)))
    if not missing:
        wanted = _wanted(contents)
        starts = [len(contents.job.models) * number // len(able) for number in range(len(able))]
        calls = [(parcel, wanted._replace(start=start)) for start in starts]
        missing = list(_told(able, _answers(look_around, calls, able, gpus)))
    if missing:
        more = f"\n… and {len(missing) - _TOLD} more" if len(missing) > _TOLD else ""
        raise OptionError(
            "nodes of the cluster lack what the job needs; nothing was started:\n"
            + "\n".join(missing[:_TOLD])
            + more
        )


def _answers(
    function: Callable[..., list[str]], calls: Sequence[tuple[Any, ...]], nodes: Sequence[Node], gpus: float
) -> Iterator[list[str]]:
    """What a function returns on each node; what is wrong if it returns nothing."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    asked = [
        ray.remote(function)
        .options(
            num_cpus=0,
            num_gpus=gpus,
            max_retries=1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False),
        )
        .remote(*call)
        for node, call in zip(nodes, calls, strict=True)
    ]
    until = time.monotonic() + _PATIENCE_S
    for answer in asked:
        try:
            yield ray.get(answer, timeout=max(0.1, until - time.monotonic()))
        except ray.exceptions.GetTimeoutError:
            yield [f"does not answer within {_PATIENCE_S:g} seconds; is it busy with another job?"]
        except ray.exceptions.RayError as error:
            yield [str(error).strip().splitlines()[-1]]


def _told(nodes: Sequence[Node], found: Iterable[list[str]]) -> Iterator[str]:
    """What is wrong with which node; one that has left the cluster meanwhile lacks nothing."""
    answers = list(found)
    there = {node["NodeID"] for node in _nodes()}
    for node, texts in zip(nodes, answers, strict=True):
        if node["NodeID"] in there:
            yield from (f"node {_name(node)}: {text}" for text in texts)


def _nodes() -> list[Node]:
    """Those that are there."""
    import ray

    listed: Any = ray.nodes  # not typed
    return [node for node in listed() if node["Alive"]]


def _versions_there() -> Callable[[], list[str]]:
    """A function that Ray sends as it is, and that needs nothing of ours where it runs."""

    def version() -> list[str]:
        try:
            import beaufort
        except ImportError as error:
            return [f"{_NOT_THERE}: {error}"]
        return [beaufort.__version__]

    return version


def _other_version(answer: list[str]) -> list[str]:
    from beaufort import __version__

    (found,) = answer
    if found == __version__:
        return []
    if " " in found:
        return [found]
    return [f"has Beaufort {found}, and the job comes from {__version__}; install the same"]


def _fits(resources: dict[str, Any], cpus: float, gpus: float) -> bool:
    return bool(resources.get("CPU", 0) >= cpus and resources.get("GPU", 0) >= gpus)


def _count(node: Node, kind: str) -> str:
    return f"{node['Resources'].get(kind, 0):g} {kind}s"


def _name(node: Node) -> str:
    return f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"


def _wanted(contents: Contents) -> NodeNeeds:
    job = contents.job
    readable = tuple(
        (number, place)
        for number, setup in enumerate(job.setups)
        for place in dict.fromkeys((0, setup.count // 2, setup.count - 1))
        if not isinstance(setup.pictures(place), Problem)
    )
    digests = tuple(model.spec.digest for model in job.models)
    return NodeNeeds(digests, readable, bool(contents.store.runs()))


def look_around(parcel: Parcel, wanted: NodeNeeds) -> list[str]:
    """What is missing where this runs."""
    job, store, _ = unpack(parcel)
    return list(itertools.chain(_pictures(job, wanted), _store(store, wanted), _models(job, wanted)))


def _models(job: Job, wanted: NodeNeeds) -> Iterator[str]:
    until = time.monotonic() + _MODELS_S
    known = list(zip(job.models, wanted.digests, strict=True))
    for model, digest in known[wanted.start :] + known[: wanted.start]:
        if model.text is None:
            continue  # it travels with the job
        if time.monotonic() > until:
            return
        try:
            found = model.load().spec.digest
        except Exception as error:  # whatever an adapter or a library raises
            yield f"the model {model.text!r} cannot be loaded: {error}"
            continue
        if found != digest:
            both = f"digests {found[:12]} and {digest[:12]}"
            yield f"the model {model.text!r} has other weights than here ({both})"
        model.let_go()


def _pictures(job: Job, wanted: NodeNeeds) -> Iterator[str]:
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


def _store(store: Store, wanted: NodeNeeds) -> Iterator[str]:
    try:
        known = bool(store.runs())
    except Exception as error:  # whatever a store of anyone's raises
        yield f"the store {store.location} cannot be read: {error}"
        return
    if wanted.recorded and not known:
        yield f"the store {store.location} is another one than here: the record of this run is not in it"
