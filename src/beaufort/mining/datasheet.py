"""A datasheet: how a set came about, and what is lopsided in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beaufort._core.text import counted
from beaufort.mining.plan import PlanItem
from beaufort.mining.review import ReviewRules, ReviewStatus

_FEW = 5
"""Prompts shown for each kind; the metadata has all."""


@dataclass(frozen=True)
class SetFacts:
    """What a datasheet tells of."""

    title: str
    license: str
    layout: str
    made: int
    """Images that were generated."""
    kept: int
    """Of these, those that enough surrogates fail on."""
    items: tuple[PlanItem, ...]
    """Of the images in the set."""
    generators: tuple[Mapping[str, Any], ...]
    surrogates: tuple[str, ...]
    fewest: int
    """Surrogates that fail on each image of the set, at least."""
    reviewed_by: str
    """Who the reviewers were."""
    status: ReviewStatus | None
    """None if nobody reviewed them."""
    rules: ReviewRules | None


def datasheet(facts: SetFacts, *, grouping: Mapping[str, Sequence[int | str]] | None = None) -> str:
    """The datasheet as Markdown.

    Args:
        facts: of the set.
        grouping: the outputs that count as each category, if they are known.
    """
    return "\n".join(
        [
            f"# {facts.title}",
            "",
            *_contents(facts, grouping),
            *_generation(facts),
            *_choice(facts),
            *_review(facts),
            *_distribution(facts),
            *_biases(facts),
            "## License",
            "",
            f"Images: {facts.license}. A generator and the material that it was given may bring conditions "
            "of their own.",
            "",
        ]
    )


def _contents(facts: SetFacts, grouping: Mapping[str, Sequence[int | str]] | None) -> Iterator[str]:
    categories = {item.category for item in facts.items}
    where = "KIND/CATEGORY/ID.png" if facts.layout == "imagenet-d" else "CATEGORY/ID.png"
    yield "## What it is"
    yield ""
    yield (
        f"{counted(len(facts.items), 'generated image')} of {len(categories)} "
        f"{'category' if len(categories) == 1 else 'categories'}, for testing image classifiers; there is no "
        f"training split. Images are at `{where}`. `metadata.parquet` has a row for each: prompt, seed, "
        "generator, what surrogates answered, and votes. `manifest.sha256` is read by `sha256sum -c`."
    )
    yield ""
    if grouping is not None:
        several = sum(len(outputs) > 1 for outputs in grouping.values())
        yield (
            f"`categories.json` has the outputs of a classifier that count as each category; {several} of "
            f"{len(grouping)} have more than one. An answer is right if it is any of them."
        )
        yield ""


def _generation(facts: SetFacts) -> Iterator[str]:
    yield "## How images were made"
    yield ""
    for generator in facts.generators:
        yield f"- generator: `{_json(generator)}`"
    seeds = [item.seed for item in facts.items]
    yield f"- seeds: one for each image, from {min(seeds)} to {max(seeds)}"
    for kind in sorted({item.kind for item in facts.items}):
        prompts = sorted({item.prompt for item in facts.items if item.kind == kind})
        more = f", and {len(prompts) - _FEW} more" if len(prompts) > _FEW else ""
        yield f"- prompts for {kind}: {'; '.join(map(_json, prompts[:_FEW]))}{more}"
    yield ""


def _choice(facts: SetFacts) -> Iterator[str]:
    yield "## How images were chosen"
    yield ""
    yield (
        f"Of {counted(facts.made, 'image')}, {facts.kept:,} were kept because surrogate models did not "
        f"answer the intended category: {', '.join(facts.surrogates)}. On each image of the set "
        f"{_share(facts.fewest, len(facts.surrogates))} failed. **The surrogates' own "
        "accuracy on this set is low by choice**: never list them among evaluated models without saying so. "
        "Models that are like a surrogate are at a disadvantage, too."
    )
    yield ""


def _review(facts: SetFacts) -> Iterator[str]:
    yield "## Who looked at them"
    yield ""
    if facts.status is None or facts.rules is None:
        yield (
            "Nobody: the images were not reviewed by people. Some may not show their category, and models "
            "are then wrong through no fault of theirs."
        )
        yield ""
        return
    status, rules = facts.status, facts.rules
    counts = {name: status.count(name) for name in ("accepted", "rejected", "tied", "open")}
    voters = [one for one in status.reviewers if one.votes]
    yield (
        f"{counted(len(voters), 'reviewer')} ({facts.reviewed_by}), up to {counted(rules.votes, 'vote')} "
        "asked for each image: "
        + ", ".join(f"{count:,} {name}" for name, count in counts.items())
        + ". Accepted images had yes for all three questions (recognizable, usable, the only category) from "
        "more than half of the votes, or an administrator settled a tie."
    )
    checks, right = sum(one.checks for one in voters), sum(one.checks_right for one in voters)
    dropped = sum(one.dropped for one in status.reviewers)
    yield (
        f"One card in {rules.check_every} was a hidden check, as long as there were any: {right:,} of "
        f"{checks:,} were answered right. Reviewers below {100 * rules.min_right:g} % of at least "
        f"{rules.min_checks} checks were dropped: {dropped}."
    )
    yield ""
    first = "vote" if rules.first_votes == 1 else f"{rules.first_votes} votes"
    yield f"Agreement on the first {first} of each image, with 95 % intervals over images:"
    yield ""
    yield "| question | images | Krippendorff's alpha | Fleiss' kappa |"
    yield "|---|---:|---:|---:|"
    for one in status.questions:
        alpha, kappa = ("undefined" if x is None else f"{x:.2f}" for x in (one.alpha, one.fleiss))
        yield f"| {one.about} | {one.images} | {alpha} | {kappa} |"
    yield ""


def _distribution(facts: SetFacts) -> Iterator[str]:
    yield "## Distribution"
    yield ""
    for name in ("kind", "nuisance", "category"):
        counts = Counter(str(getattr(item, name)) for item in facts.items)
        yield f"| {name} | images |"
        yield "|---|---:|"
        for value, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])):
            yield f"| {_cell(value)} | {count} |"
        yield ""


def _biases(facts: SetFacts) -> Iterator[str]:
    counts = Counter(item.category for item in facts.items)
    most, fewest = counts.most_common()[0], counts.most_common()[-1]
    yield "## Known biases"
    yield ""
    yield "- Images show what the generator makes of a prompt, not what a camera would see."
    yield "- They were chosen by failures of the models above: the set measures what those models find hard."
    yield (
        f"- Categories are not equally frequent: {_cell(most[0])} has {counted(most[1], 'image')}, "
        f"{_cell(fewest[0])} has {fewest[1]}. Report accuracy per category beside the pooled one."
        if most[1] != fewest[1]
        else f"- Every category has {counted(most[1], 'image')}."
    )
    yield ""


def _share(some: int, many: int) -> str:
    return "it" if many == 1 else f"all {many}" if some == many else f"at least {some} of the {many}"


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
