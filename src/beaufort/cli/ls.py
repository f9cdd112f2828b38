"""`beaufort ls`: list what is available."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.errors import OptionError
from beaufort._core.text import counted
from beaufort.cli._console import table
from beaufort.cli._options import Json
from beaufort.cli.data import list_files
from beaufort.corruptions import SCALES, SUBSETS, Corruption, corruptions, get_corruption_names, is_chain

if TYPE_CHECKING:
    from beaufort.suites import Suite


class Listing(StrEnum):
    """What `beaufort ls` lists."""

    corruptions = "corruptions"
    suites = "suites"
    datasets = "datasets"
    models = "models"
    filters = "filters"
    adaptations = "adaptations"
    files = "files"
    grids = "grids"


def ls(
    kind: Annotated[Listing, typer.Argument(help="What to list.")],
    name: Annotated[
        str | None,
        typer.Argument(help="Subset of corruptions (weather, mnist-c, …), or a grid."),
    ] = None,
    *,
    as_json: Json = False,
) -> None:
    """List corruptions, suites, datasets, models, image filters, adaptation methods, files, or grids.

    `beaufort ls corruptions weather`

    `beaufort ls suites --json`

    **corruptions**: name, group, whether random, scales with published constants. **suites**: version,
    size, scale, baseline, headline metrics. **datasets**: those that are opened by name, and the kinds that
    are opened by path. **models**: the kinds, and whether what they need is installed. **filters**: image
    filters that can be applied before a model. **adaptations**: methods of `run --adapt` and their published
    defaults (requires the extra torch). **files**: downloads of the catalog, their size, license and
    origin, and whether they are in the cache. **grids**: reference models of `beaufort testbed`; with a name,
    the settings and groups of one.
    """
    if name is not None and kind not in (Listing.corruptions, Listing.grids):
        raise OptionError(f"`beaufort ls {kind}` takes no name, got {name!r}")
    if kind is Listing.corruptions:
        _list_corruptions(name, as_json)
    elif kind is Listing.files:
        list_files(as_json)
    elif kind is Listing.grids:
        from beaufort.cli.testbed import list_grids

        list_grids(name, as_json)
    else:
        listing = {
            Listing.suites: _list_suites,
            Listing.datasets: _list_datasets,
            Listing.models: _list_models,
            Listing.filters: _list_filters,
            Listing.adaptations: _list_adaptations,
        }
        listing[kind](as_json)


def _list_corruptions(subset: str | None, as_json: bool) -> None:
    if subset is None:
        names = list(dict.fromkeys([*SUBSETS["all"], *SUBSETS["mnist-c-all"], *corruptions]))
    else:
        names = get_corruption_names(subset)
    found = [corruptions[name] for name in names]
    if as_json:
        typer.echo(json.dumps([_as_dict(corruption) for corruption in found], indent=2))
    else:
        header = ("name", "group", "random", "scales", "description")
        typer.echo(table([header, *(_cells(corruption) for corruption in found)]))


def _list_suites(as_json: bool) -> None:
    from beaufort.suites import SHIFT_SUITE_NAMES, SUITE_NAMES, get_suite, registered_suites

    found = [get_suite(name) for name in (*SUITE_NAMES, *SHIFT_SUITE_NAMES, *registered_suites)]
    if as_json:
        typer.echo(json.dumps([suite.as_dict() for suite in found], indent=2))
    else:
        header = ("name", "version", "corruptions × severities", "scale", "baseline", "headline")
        typer.echo(table([header, *(_suite_cells(suite) for suite in found)]))


def _suite_cells(suite: Suite) -> tuple[str, ...]:
    if suite.parts:
        return suite.name, str(suite.version), counted(len(suite.parts), "dataset"), "", "none", "accuracy"
    levels = suite.severities if suite.severities == "published" else str(len(suite.severities))
    kinds = Counter(_kind_of_shift(shift) for shift in suite.shifts) + Counter(sequence=len(suite.sequences))
    plain = [f"{len(suite.corruptions)} × {levels}"] if suite.corruptions else []
    size = " + ".join([*plain, *(counted(count, kind) for kind, count in kinds.items())])
    headline = ", ".join(suite.metrics)
    return suite.name, str(suite.version), size, suite.scale, suite.baseline or "none", headline


def _kind_of_shift(shift: str) -> str:
    from beaufort.suites.attacks import attacks

    kind = shift.partition("@")[0]
    attack = kind in attacks or kind == "foolbox"
    return "chain" if is_chain(shift) else "attack" if attack else "other shift"


def _list_datasets(as_json: bool) -> None:
    from beaufort._core.catalog import entries
    from beaufort.data import readers

    named = [(entry.name, entry.about) for entry in entries.values() if entry.opens_as]
    kinds = [(f"{one.kind}:PATH", one.looks_like) for one in readers.values()]
    if as_json:
        found = {"names": dict(named), "kinds": {one.kind: one.looks_like for one in readers.values()}}
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        typer.echo(table([("dataset", "description"), *named, *kinds]))


def _list_models(as_json: bool) -> None:
    from beaufort.models import adapters, model_names

    if as_json:
        kinds = [
            {
                "kind": one.kind,
                "needs": list(one.needs),
                "installed": not one.missing,
                "install": one.install,
                "example": one.example,
                "summary": one.summary,
            }
            for one in adapters.values()
        ]
        typer.echo(json.dumps({"kinds": kinds, "names": model_names()}, indent=2))
        return
    header = ("kind", "needs", "installed", "example", "description")
    rows = [
        (one.kind, ", ".join(one.needs) or "nothing", one.install or "yes", one.example, one.summary)
        for one in adapters.values()
    ]
    typer.echo(table([header, *rows]))
    if names := model_names():
        typer.echo("\n" + table([("name", "loads"), *names.items()]))


def _list_adaptations(as_json: bool) -> None:
    from beaufort.models.adaptation import METHODS, parse_method

    options = {name: asdict(parse_method(name)) for name in METHODS}
    if as_json:
        found = [{"name": name, "options": options[name], "summary": METHODS[name][1]} for name in METHODS]
        typer.echo(json.dumps(found, indent=2))
        return
    _show_options("method", options, {name: summary for name, (_, summary) in METHODS.items()})


def _show_options(kind: str, options: Mapping[str, Mapping[str, object]], about: Mapping[str, str]) -> None:
    rows = [
        (name, ",".join(f"{key}={_written(value)}" for key, value in options[name].items()), about[name])
        for name in options
    ]
    typer.echo(table([(kind, "options", "description"), *rows]))


def _list_filters(as_json: bool) -> None:
    from beaufort.models.filters import filter_kinds

    options = {
        name: {one.name: one.default for one in fields(kind)} | dict.fromkeys(_gates(kind))
        for name, kind in sorted(filter_kinds.items())
    }
    about = {name: (kind.__doc__ or "").partition("\n")[0] for name, kind in filter_kinds.items()}
    if as_json:
        found = [{"name": name, "options": options[name], "summary": about[name]} for name in options]
        typer.echo(json.dumps(found, indent=2, ensure_ascii=False))
        return
    _show_options("filter", options, about)


def _gates(kind: type[object]) -> tuple[str, ...]:
    """Return the options that limit a filter to some images; views have none."""
    return () if hasattr(kind, "source_size") else ("above", "below")


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "…" if value is None else str(value)


def _cells(corruption: Corruption) -> tuple[str, ...]:
    scales = "all" if set(corruption.recipes) >= set(SCALES) else ", ".join(corruption.recipes)
    return corruption.name, corruption.group, "yes" if corruption.random else "no", scales, corruption.summary


def _as_dict(corruption: Corruption) -> dict[str, object]:
    return {
        "name": corruption.name,
        "group": corruption.group,
        "random": corruption.random,
        "version": corruption.version,
        "scales": list(corruption.recipes),
        "summary": corruption.summary,
    }
