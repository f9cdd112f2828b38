"""Random requests to the review never cause a server error, and no invalid vote counts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.mining.review.people import People

pytest.importorskip("fastapi", reason="FastAPI is not installed; the extra review has it")
pytest.importorskip("schemathesis", reason="schemathesis is not installed; the extra dev has it")

import schemathesis
from starlette.testclient import TestClient

from beaufort.mining.review.access import RateLimit, form_token
from beaufort.mining.review.app import COOKIE, HEADERS, make_app

EXAMPLES = 20
TEXT = {"type": "string"}
ANSWER = {"type": "string", "enum": ["yes", "no", "?"]}
FORMS: dict[str, dict[str, Any]] = {
    "/begin": {"form": TEXT},
    "/vote": {
        "form": TEXT,
        "showing": TEXT,
        "skip": TEXT,
        "comment": TEXT,
        "recognizable": ANSWER,
        "usable": ANSWER,
        "single": ANSWER,
    },
    "/undo": {"form": TEXT},
    "/admin/settle": {"form": TEXT, "image": TEXT, "decision": TEXT},
}


def schema_of(app: Any) -> Any:
    """Return the schema of the app with the fields of its forms, which it parses itself."""
    found: dict[str, Any] = app.openapi()
    for path, fields in FORMS.items():
        body = {"type": "object", "properties": fields, "additionalProperties": TEXT}
        content = {"application/x-www-form-urlencoded": {"schema": body}}
        found["paths"][path]["post"]["requestBody"] = {"content": content}
    return schemathesis.openapi.from_dict(found)


def send(client: Any, case: Any, form: str | None) -> Any:
    """Build a random request; with `form`, as if sent by one of our pages."""
    body = case.body
    if isinstance(body, dict):
        body = {str(key): str(value) for key, value in body.items()} | (
            {} if form is None else {"form": form}
        )
    known = isinstance(body, dict | bytes | str)
    kind = {"data": body} if isinstance(body, dict) else {"content": body} if known else {}
    return client.request(
        case.method, case.formatted_path, params=case.query or None, follow_redirects=False, **kind
    )


@pytest.mark.parametrize("who", ["nobody", "ann", "admin"])
def test_the_api_holds_whatever_comes(people: People, who: str) -> None:
    generous = RateLimit(1e9, 10**9)
    app = make_app(people.review, limit=generous, failures=generous)
    before = people.review.connection.execute("SELECT COUNT(*) FROM votes").fetchone()[0]
    statuses: set[int] = set()
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=True) as client:
        token = people.tokens.get(who)
        if token is not None:
            client.cookies.set(COOKIE, token)
        for operation in schema_of(app).get_all_operations():

            @settings(
                max_examples=EXAMPLES,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
                database=None,
                derandomize=True,
            )
            @given(case=operation.ok().as_strategy())
            def fuzz(case: Any) -> None:
                response = send(client, case, form_token(token) if token is not None else None)
                statuses.add(response.status_code)
                assert response.status_code < 500, (case.method, case.formatted_path)
                for name, value in HEADERS.items():
                    assert response.headers[name] == value
                if who == "nobody":
                    assert response.status_code in (403, 404, 405, 422)

            fuzz()
    after = people.review.connection.execute("SELECT COUNT(*) FROM votes").fetchone()[0]
    assert after == before  # no card was shown, so nothing that is sent can be a vote
    assert statuses
    if who != "nobody":
        assert 200 in statuses or 303 in statuses
