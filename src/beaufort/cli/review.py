"""`beaufort review`: people look at images and say whether they show what they are meant to show."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.text import printable
from beaufort.cli._console import table
from beaufort.cli._options import Json, ModelOptions, OptionalOutput, Seed, Title, model_options

if TYPE_CHECKING:
    from beaufort.metrics.stats import Estimate

app = typer.Typer(
    no_args_is_help=True, help="People say whether images show what they are meant to show, in a browser."
)

File = Annotated[Path, typer.Argument(help="The file of the review.")]
Address = Annotated[str, typer.Option(help="URL under which reviewers reach the server.")]
HERE = "http://127.0.0.1:8765"


@app.command()
def create(
    file: Annotated[Path, typer.Argument(help="The file to create.")],
    images: Annotated[
        Path, typer.Argument(help="CSV with the columns file, category and, for controls and examples, role.")
    ],
    *,
    title: Title = None,
    options: ModelOptions = None,
    address: Address = HERE,
    seed: Seed = 0,
) -> None:
    """Create a review from a list of images, and print the administrator's link, this once.

    `beaufort review create chairs.review images/list.csv --set votes=3`

    Options: votes of each image (3); check_every (5: one card in five is a hidden check); min_checks before a
    reviewer can be dropped (4); min_right, the fraction of checks that must be right (0.75); seat_s, the
    seconds for which a card that was shown is reserved (900).
    """
    from beaufort.mining.review import create_review, parse_rules

    token = create_review(
        file, images, rules=parse_rules(model_options(options)), title=title or "Image review", seed=seed
    )
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
    address: Annotated[
        list[str] | None, typer.Option(help="URL under which reviewers reach the server.")
    ] = None,
) -> None:
    """Serve a review until interrupted; nobody sees anything without a personal link.

    `beaufort review serve chairs.review`

    Behind a proxy, `--address https://review.example.org` lets requests for this name in, and restricts the
    cookie to HTTPS.
    """
    from beaufort.mining.review import serve as serve_review

    def started() -> None:
        typer.echo(
            f"serving {printable(file)} on {host}:{port}; Ctrl-C ends it, and every saved vote stays",
            err=True,
        )

    serve_review(file, host=host, port=port, addresses=address or (), started=started)


@app.command()
def status(
    file: File,
    *,
    output: OptionalOutput = None,
    as_json: Json = False,
) -> None:
    """Print how far a review is, how far people agree, and who was dropped; or write the decisions.

    `beaufort review status chairs.review`

    `beaufort review status chairs.review --output decisions.csv` writes what became of each image: accepted,
    rejected, tied or open; `--output -` prints it. Comments are on one line, separated by `|`, and are no
    formulas for a spreadsheet.
    """
    from beaufort._core.files import write_output
    from beaufort.mining.review import decisions_csv, open_review, review_status

    review = open_review(file)
    if output is not None:
        text = decisions_csv(review)
        if str(output) == "-":
            typer.echo(printable(text, keep="\n"), nl=False)
        else:
            write_output(output, text.encode())
        return
    found = review_status(review)
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=2))
        return
    typer.echo(", ".join(f"{found.count(name)} {name}" for name in ("accepted", "rejected", "tied", "open")))
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
    for one in found.reviewers:
        checks, dropped = f"{one.checks_right} of {one.checks}", "dropped" if one.dropped else ""
        people.append((one.name, str(one.votes), str(one.skipped), checks, dropped))
    typer.echo(table(people))


def _link(address: str, token: str) -> str:
    return f"{address.rstrip('/')}/r/{token}"


def _shown(estimate: Estimate | None) -> str:
    return "undefined" if estimate is None else f"{estimate:.2f}"
