"""What the HTML pages of all studies have in common."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from beaufort._core.pages import render
from beaufort.report.provenance import Fact
from beaufort.studies.failed import TrainingsLooked
from beaufort.training.ending import ENDING_RULE

_KINDS = {"png": "image/png", "svg": "image/svg+xml"}


def study_html(
    study: str,
    *,
    facts: Mapping[str, str],
    trainings: TrainingsLooked,
    navigation: Mapping[str, str],
    counted: str = "",
    **values: Any,
) -> str:
    """The text of a study's page, which needs no other file.

    Args:
        study: name of the template.
        facts: for the end of the page.
        trainings: of which those are listed first that show no sign of learning.
        navigation: titles of the page's parts by their places.
        counted: what intervals in the paper's tables are over; empty if there are no such tables.
        values: what else the template wants.
    """
    return render(
        f"reproduce/{study}.html",
        styles=["studies/study.css"],
        eyebrow="reproduction",
        facts=[Fact(key, (value,)) for key, value in facts.items()],
        counted=counted,
        trainings=trainings,
        ending_rule=ENDING_RULE,
        navigation={**({"failed": "Without learning"} if trainings.failed else {}), **navigation},
        **values,
    )


def data_address(name: str, content: bytes) -> str:
    """A picture as an address that is part of the page.

    >>> data_address("dot.png", b"dot")
    'data:image/png;base64,ZG90'
    """
    return f"data:{_KINDS[name.rpartition('.')[2]]};base64,{base64.b64encode(content).decode()}"
