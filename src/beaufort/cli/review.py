"""`beaufort review`: let people judge images in a browser."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from beaufort._core.text import printable
from beaufort.cli._console import table
from beaufort.cli._options import Json, ModelOptions, OptionalOutput, Seed, model_options

if TYPE_CHECKING:
    from beaufort.metrics.stats import Estimate

app = typer.Typer(
    no_args_is_help=True, help="Let people judge in a browser whether images show what they should."
)

File = Annotated[Path, typer.Argument(help="File of the review.")]
_ADDRESS_HELP = "URL under which reviewers reach the server."
Address = Annotated[str, typer.Option(help=_ADDRESS_HELP)]
_LOCAL = "http://127.0.0.1:8765"


@app.command()
def create(
    file: Annotated[Path, typer.Argument(help="File to create.")],
    images: Annotated[
        Path, typer.Argument(help="CSV with the columns file, category and, for controls and examples, role.")
    ],
    *,
    options: ModelOptions = None,
    address: Address = _LOCAL,
    seed: Seed = None,
) -> None:
    """Create a review from a list of images, and print the administrator's link, which is not stored.

    `beaufort review create chairs.review images/list.csv --set votes=3`

    Options: title; votes per image (3); check_every (5: one card in five is a hidden check); min_checks
    before a reviewer can be dropped (4); min_right, the fraction of checks that a reliable reviewer passes
    (0.9); error, the largest probability of dropping such a reviewer (0.01); seat_s, the seconds for which a
    card is reserved for a reviewer (900).
    """
    from beaufort.mining.review import create_review, parse_rules

    rules = model_options(options)
    title = str(rules.pop("title", "Image review"))
    token = create_review(file, images, rules=parse_rules(rules), title=title, seed=seed or 0)
    typer.echo(f"admin  {_link(address, token)}")


@app.command()
def invite(
    file: File,
    names: Annotated[list[str], typer.Argument(help="Names of reviewers.")],
    *,
    admin: Annotated[
        bool, typer.Option("--admin", help="Grant access to the admin page and to settling ties.")
    ] = False,
    renew: Annotated[bool, typer.Option("--renew", help="Replace the link of a reviewer.")] = False,
    address: Address = _LOCAL,
) -> None:
    """Print a personal link for each reviewer; only its hash is stored, so it cannot be printed again.

    `beaufort review invite chairs.review ann bob`

    `beaufort review invite chairs.review ann --renew` replaces Ann's link; the old one stops working.
    """
    from beaufort.mining.review import invite_all, open_review

    tokens = invite_all(open_review(file), names, admin=admin, renew=renew)
    for name, token in zip(names, tokens, strict=True):
        typer.echo(f"{printable(name)}  {_link(address, token)}")


@app.command()
def reinstate(
    file: File,
    names: Annotated[list[str], typer.Argument(help="Names of dropped reviewers.")],
) -> None:
    """Reinstate dropped reviewers: their votes count again, and only new checks are tested.

    `beaufort review reinstate chairs.review ann`
    """
    from beaufort.mining.review import open_review
    from beaufort.mining.review import reinstate as reinstate_reviewer

    review = open_review(file)
    for name in names:
        reinstate_reviewer(review, name)


@app.command()
def serve(
    file: File,
    *,
    host: Annotated[str, typer.Option(help="Address to listen on; by default only this machine.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8765,
    address: Annotated[list[str] | None, typer.Option(help=_ADDRESS_HELP)] = None,
) -> None:
    """Serve a review until interrupted; every page requires a personal link.

    `beaufort review serve chairs.review`

    Behind a proxy, `--address https://review.example.org` allows requests for this name, and restricts the
    cookie to HTTPS.
    """
    from beaufort.mining.review import serve as serve_review

    def started() -> None:
        typer.echo(
            f"serving {printable(file)} on {host}:{port}; press Ctrl-C to stop, votes are saved",
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
    """Print the progress of a review and the agreement of reviewers, or write the decisions.

    `beaufort review status chairs.review`

    `beaufort review status chairs.review --output decisions.csv` writes the decision on each image: accepted,
    rejected, tied or open; `--output -` prints it. Comments are joined by `|` and escaped for spreadsheets.
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
    now = review_status(review)
    if as_json:
        typer.echo(json.dumps(asdict(now), indent=2))
        return
    typer.echo(", ".join(f"{now.count(name)} {name}" for name in ("accepted", "rejected", "tied", "open")))
    for about, agreements in (("question", now.questions), ("category", now.categories)):
        rows = [(about, "images", "Krippendorff's alpha", "Fleiss' kappa")]
        rows += [(one.about, str(one.images), _number(one.alpha), _number(one.fleiss)) for one in agreements]
        if agreements:
            typer.echo(table(rows))
    if now.pairs:
        pairs = [("reviewers", "images", "Cohen's kappa")]
        pairs += [(f"{one.first}, {one.second}", str(one.images), _number(one.kappa)) for one in now.pairs]
        typer.echo(table(pairs))
    people = [("reviewer", "votes", "skipped", "checks correct", "")]
    for one in now.reviewers:
        checks, dropped = f"{one.checks_right} of {one.checks}", "dropped" if one.dropped else ""
        people.append((one.name, str(one.votes), str(one.skipped), checks, dropped))
    typer.echo(table(people))


def _link(address: str, token: str) -> str:
    return f"{address.rstrip('/')}/r/{token}"


def _number(estimate: Estimate | None) -> str:
    return "undefined" if estimate is None else f"{estimate:.2f}"
