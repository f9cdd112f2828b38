"""`beaufort data`: download and verify files of the catalog."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from beaufort._core.catalog import Entry, State, assets, cache_folder, entries, is_offline, pull, state
from beaufort._core.errors import AssetError
from beaufort._core.files import write_output
from beaufort._core.registry import Registry
from beaufort._core.text import byte_size, counted, printable
from beaufort.cli._console import progress_bar, table
from beaufort.cli._options import Delete, Json, OptionalOutput

app = typer.Typer(
    help="Download and verify files of the catalog.", no_args_is_help=True, rich_markup_mode="markdown"
)


@app.callback()
def data() -> None:
    """Download and verify the files of the catalog: datasets, textures for corruptions, a small model.

    `beaufort data pull mnist-test`

    BEAUFORT_MIRROR is a directory that is searched before the network, BEAUFORT_CACHE the directory of the
    cache, and BEAUFORT_OFFLINE=1 disables the network.
    """


def list_files(as_json: bool) -> None:
    """Print the files of the catalog."""
    if as_json:
        typer.echo(json.dumps([_as_dict(entry) for entry in _catalog().values()], indent=2))
        return
    header = ("name", "size", "license", "in cache", "description", "origin")
    rows = [
        (e.name, byte_size(e.size), e.license, _presence(e), e.about, e.origin) for e in _catalog().values()
    ]
    typer.echo(table([header, *rows]))
    if is_offline():
        typer.echo("BEAUFORT_OFFLINE is set: the network is not used", err=True)


@app.command("pull")
def pull_data(
    names: Annotated[list[str], typer.Argument(help="Names; `beaufort ls files` lists them.")],
    output: OptionalOutput = None,
) -> None:
    """Download files into the cache, resuming interrupted downloads.

    `beaufort data pull mnist-test mnist-train`

    For a machine without a network: `beaufort data pull frost --output carried` also copies the files to the
    directory `carried`; copy it to that machine, and set BEAUFORT_MIRROR to its path.
    """
    catalog = _catalog()
    wanted = [catalog[name] for name in dict.fromkeys(names)]
    failed = False
    for entry in wanted:
        try:
            with progress_bar(entry.name) as progress:
                paths = pull(entry.name, progress=progress)
            folder = paths[0].parent if output is None else _copied(entry, output)
            files = counted(len(paths), "file")
            typer.echo(
                f"{entry.name}: {files}, {byte_size(entry.size)}, {entry.license}, in {printable(folder)}"
            )
        except AssetError as error:
            failed = True
            typer.echo(f"problem: {entry.name}: {error}", err=True)
    if failed:
        raise typer.Exit(1)


@app.command("verify")
def verify_data(
    names: Annotated[
        list[str] | None, typer.Argument(help="Names; all in the cache by default.", show_default=False)
    ] = None,
    delete: Delete = False,
    as_json: Json = False,
) -> None:
    """Verify the sha256 of files in the cache; the exit code is 1 if one is damaged.

    `beaufort data verify --delete`
    """
    catalog = _catalog()
    wanted = [catalog[name] for name in dict.fromkeys(names or catalog)]
    found = {file: state(file) for entry in wanted for file in entry.files}
    damaged = [file for file, what in found.items() if what is State.damaged]
    if delete:
        for file in damaged:
            (cache_folder() / file).unlink()
    if as_json:
        typer.echo(json.dumps({"cache": str(cache_folder()), "files": found, "deleted": delete}, indent=2))
    else:
        for entry in wanted:
            states = {found[file] for file in entry.files}
            if names or states != {State.missing}:
                typer.echo(f"{entry.name}: {_worst(states)}")
        for file in damaged:
            remedy = "deleted" if delete else "delete it with --delete, then pull it again"
            typer.echo(f"damaged: {cache_folder() / file}: sha256 does not match; {remedy}", err=True)
    if damaged:
        raise typer.Exit(1)


def _copied(entry: Entry, to: Path) -> Path:
    """Copy the files of an entry into the directory of a mirror; return their directory."""
    try:
        for file in entry.files:
            (to / file).parent.mkdir(parents=True, exist_ok=True)
            write_output(to / file, (cache_folder() / file).read_bytes())
    except OSError as error:
        raise AssetError(f"cannot copy {entry.name} to {to}: {error.strerror or error}") from None
    return (to / entry.files[0]).parent


def _catalog() -> Registry[Entry]:
    """Return all entries; importing the packages registers those of datasets and models."""
    import beaufort.data
    import beaufort.models  # noqa: F401

    return entries


def _worst(states: set[State]) -> str:
    if State.damaged in states:
        return "damaged"
    if State.missing in states:
        return "not in the cache" if states == {State.missing} else "incomplete"
    return "ok"


def _presence(entry: Entry) -> str:
    """Return whether files of these names exist; `verify` reads them."""
    there = [(cache_folder() / file).is_file() for file in entry.files]
    return "yes" if all(there) else "partly" if any(there) else "no"


def _as_dict(entry: Entry) -> dict[str, object]:
    return {
        "name": entry.name,
        "about": entry.about,
        "size": entry.size,
        "license": entry.license,
        "origin": entry.origin,
        "homepage": entry.homepage,
        "in_cache": _presence(entry),
        "files": {file: assets[file].sha256 for file in entry.files},
    }
