"""`beaufort review`: people look at images and say whether they show what they are meant to show."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.text import printable
from beaufort.cli._console import table
from beaufort.cli._options import Json, Seed

if TYPE_CHECKING:
    from beaufort.metrics.stats import Estimate

app = typer.Typer(
    no_args_is_help=True, help="People say whether images show what they are meant to show, in a browser."
)

File = Annotated[Path, typer.Argument(help="The file of the review.")]
Address = Annotated[str, typer.Option(help="How reviewers reach the server, for the links that are printed.")]
HERE = "http://127.0.0.1:8765"


@app.command()
def create(
    file: Annotated[Path, typer.Argument(help="The file to make.")],
    images: Annotated[
        Path, typer.Argument(help="CSV with the columns file, category and, for controls and examples, role.")
    ],
    *,
    title: Annotated[str, typer.Option(help="What reviewers read at the top.")] = "Image review",
    votes: Annotated[int, typer.Option(help="Votes that an image gets.")] = 3,
    check_every: Annotated[int, typer.Option(help="One card in so many is a hidden check.")] = 5,
    min_checks: Annotated[int, typer.Option(help="Checks before a reviewer can be dropped.")] = 4,
    min_right: Annotated[float, typer.Option(help="Share of checks that must be right.")] = 0.75,
    address: Address = HERE,
    seed: Seed = 0,
) -> None:
    """Make a review from a list of images, and print the administrator's link, this once.

    `beaufort review create chairs.review images/list.csv`
    """
    from beaufort.mining.review import ReviewRules, create_review

    rules = ReviewRules(votes=votes, check_every=check_every, min_checks=min_checks, min_right=min_right)
    token = create_review(file, images, rules=rules, title=title, seed=seed)
    typer.echo(f"admin  {_link(address, token)}")


@app.command()
def invite(
    file: File,
    names: Annotated[list[str], typer.Argument(help="Names of reviewers.")],
    *,
    admin: Annotated[bool, typer.Option("--admin", help="They see the admin page and settle ties.")] = False,
    renew: Annotated[bool, typer.Option("--renew", help="A new link for somebody invited before.")] = False,
    address: Address = HERE,
) -> None:
    """Print a personal link for each reviewer; only its hash is kept, so it cannot be printed again.

    `beaufort review invite chairs.review ann bob`

    `beaufort review invite chairs.review ann --renew` gives Ann another link, and ends the one she had.
    """
    from beaufort.mining.review import invite_all, open_review

    tokens = invite_all(open_review(file), names, admin=admin, renew=renew)
    for name, token in zip(names, tokens, strict=True):
        typer.echo(f"{printable(name)}  {_link(address, token)}")


@app.command()
def serve(
    file: File,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; the default is this machine alone.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8765,
    name: Annotated[
        list[str] | None, typer.Option(help="A name that the server is reached by, as behind a proxy.")
    ] = None,
    https: Annotated[
        bool, typer.Option("--https", help="People reach it by HTTPS, through a proxy.")
    ] = False,
) -> None:
    """Show a review until interrupted; nobody sees anything without a personal link.

    `beaufort review serve chairs.review`
    """
    from beaufort.mining.review import serve as serve_review

    def started() -> None:
        typer.echo(
            f"serving {printable(file)} on {host}:{port}; Ctrl-C ends it, and every saved vote stays",
            err=True,
        )

    serve_review(file, host=host, port=port, names=tuple(name or ()), https=https, started=started)


@app.command()
def status(file: File, *, as_json: Json = False) -> None:
    """Print how far a review is, how far people agree, and who was dropped.

    `beaufort review status chairs.review`
    """
    from beaufort.mining.review import open_review, standing

    found = standing(open_review(file))
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    counts = {name: found.count(name) for name in ("accepted", "rejected", "tied", "open")}
    typer.echo(", ".join(f"{count} {name}" for name, count in counts.items()))
    for about, agreements in (("question", found.questions), ("category", found.categories)):
        rows = [(about, "images", "Krippendorff's alpha", "Fleiss' kappa")]
        rows += [(one.about, str(one.images), _shown(one.alpha), _shown(one.fleiss)) for one in agreements]
        if agreements:
            typer.echo(table(rows))
    if found.pairs:
        pairs = [("reviewers", "images", "Cohen's kappa")]
        pairs += [(f"{one.first}, {one.second}", str(one.images), _shown(one.kappa)) for one in found.pairs]
        typer.echo(table(pairs))
    people = [("reviewer", "votes", "skipped", "checks right", "")]
    people += [
        (
            one.name,
            str(one.votes),
            str(one.skipped),
            f"{one.checks_right} of {one.checks}",
            "dropped" if one.dropped else "",
        )
        for one in found.reviewers
    ]
    typer.echo(table(people))


@app.command()
def decisions(
    file: File,
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="CSV to write; it is printed if not given.")
    ] = None,
) -> None:
    """Write what became of each image: accepted, rejected, tied or open.

    `beaufort review decisions chairs.review --output decisions.csv`

    Comments are on one line, separated by `|`, and are no formulas for a spreadsheet.
    """
    from beaufort._core.files import write_output
    from beaufort._core.text import csv_text, spreadsheet_cell
    from beaufort.mining.review import decisions as all_decisions
    from beaufort.mining.review import open_review

    text = csv_text(
        ["file", "category", "yes", "no", "decision", "settled", "comments"],
        [
            (
                one.file,
                one.category,
                one.yes,
                one.no,
                one.decision,
                int(one.settled),
                spreadsheet_cell(printable(" | ".join(" ".join(said.split()) for said in one.comments))),
            )
            for one in all_decisions(open_review(file))
        ],
    )
    if output is None:
        typer.echo(printable(text, keep="\n"), nl=False)
    else:
        write_output(output, text.encode())


def _link(address: str, token: str) -> str:
    return f"{address.rstrip('/')}/r/{token}"


def _shown(estimate: Estimate | None) -> str:
    return "undefined" if estimate is None else f"{estimate:.2f}"
