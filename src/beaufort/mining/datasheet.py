"""A datasheet: how a set came about, and what is lopsided in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beaufort._core.pages import render_fragment
from beaufort._core.text import counted
from beaufort.mining.plan import PlanItem
from beaufort.mining.review import ReviewRules, ReviewStatus


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
    """Return the datasheet as Markdown.

    Args:
        facts: of the set.
        grouping: the outputs that count as each category, if they are known.
    """
    many = len(facts.surrogates)
    kinds = sorted({item.kind for item in facts.items})
    by_category = Counter(item.category for item in facts.items).most_common()
    status = facts.status
    decisions = ("accepted", "rejected", "tied", "open")
    return render_fragment(
        "mining/datasheet.md",
        facts=facts,
        grouping=grouping,
        several=sum(len(outputs) > 1 for outputs in (grouping or {}).values()),
        categories=by_category,
        most=by_category[0],
        fewest=by_category[-1],
        prompts={kind: sorted({i.prompt for i in facts.items if i.kind == kind}) for kind in kinds},
        failed="it"
        if many == 1
        else (f"all {many}" if facts.fewest == many else f"at least {facts.fewest} of the {many}"),
        voters=[one for one in status.reviewers if one.votes] if status else [],
        decisions=", ".join(f"{status.count(name):,} {name}" for name in decisions) if status else "",
        distribution={name: _counts(facts.items, name) for name in ("kind", "nuisance", "category")},
        counted=counted,
        quoted=_json,
        quoted_list=lambda texts: "; ".join(map(_json, texts)),
        shown=lambda estimate: "undefined" if estimate is None else f"{estimate:.2f}",
    )


def _counts(items: Sequence[PlanItem], name: str) -> list[tuple[str, int]]:
    counts = Counter(str(getattr(item, name)) for item in items)
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))


def _json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
