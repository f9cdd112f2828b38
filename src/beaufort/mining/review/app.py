"""The web application of a review. Requests refer to cards by random ids, and nothing becomes a path.

Annotations are evaluated here, because FastAPI reads them; FastAPI is imported when the first app is made.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from beaufort._core.pages import render, render_fragment, served_policy
from beaufort.mining.review import cards, votes
from beaufort.mining.review.access import RateLimit, Reviewer, find_reviewer, form_token, is_form_token
from beaufort.mining.review.database import Review, ReviewError
from beaufort.mining.review.rules import QUESTIONS
from beaufort.mining.review.status import MIN_IMAGES, review_status

if TYPE_CHECKING:
    from fastapi import FastAPI

COOKIE = "beaufort_review"
STYLES = ("mining/review/review.css",)
SCRIPTS = ("mining/review/htmx.min.js", "mining/review/review.js")

_MAX_BODY = 16_384
_MAX_FIELDS = 16
_COOKIE_S = 30 * 24 * 3600

HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class RejectedError(Exception):
    """A request that is rejected with a status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def make_app(
    review: Review,
    *,
    names: tuple[str, ...] = ("127.0.0.1", "localhost"),
    https: bool = False,
    limit: RateLimit | None = None,
    failures: RateLimit | None = None,
) -> "FastAPI":
    """Return the web application of a review.

    Args:
        review: the open review.
        names: accepted host names of requests.
        https: whether to restrict the cookie to HTTPS.
        limit: limit on requests of one reviewer; by default 20 a second, 60 at once.
        failures: limit on wrong tokens from one address; by default one in six seconds, 20 at once.
    """
    from fastapi import FastAPI, Request, Response
    from fastapi.concurrency import run_in_threadpool
    from fastapi.responses import HTMLResponse, RedirectResponse
    from starlette.exceptions import HTTPException
    from starlette.middleware.trustedhost import TrustedHostMiddleware

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, title="Beaufort review")
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(names))
    limit, failures = limit or RateLimit(20, 60), failures or RateLimit(1 / 6, 20)
    headers = {**HEADERS, "Content-Security-Policy": served_policy(styles=STYLES, scripts=SCRIPTS)}

    @app.middleware("http")
    async def add_headers(request: Request, follow: Callable[[Request], Awaitable[Response]]) -> Response:
        response = await follow(request)
        response.headers.update(headers)
        return response

    def page(name: str, status: int = 200, **values: Any) -> Response:
        text = render(
            f"mining/review/{name}.html",
            styles=STYLES,
            scripts=SCRIPTS,
            data={},
            served=True,
            title=review.title,
            eyebrow="review",
            rules=review.rules,
            **values,
        )
        return HTMLResponse(text, status_code=status)

    @app.exception_handler(RejectedError)
    async def on_rejected(request: Request, error: RejectedError) -> Response:
        return page("rejected", error.status, message=error.message)

    @app.exception_handler(ReviewError)
    async def on_review_error(request: Request, error: ReviewError) -> Response:
        return page("rejected", 409, message=f"Not saved: {error}.")

    @app.exception_handler(HTTPException)
    async def on_http_error(request: Request, error: HTTPException) -> Response:
        return page("rejected", error.status_code, message="Page not found.")

    def identify(request: Request, token: str) -> Reviewer:
        """Return the owner of a token; too many wrong tokens from one address are rejected early."""
        reviewer = find_reviewer(review, token)
        if reviewer is None:
            if not failures.allows(request.client.host if request.client else ""):
                raise RejectedError(429, "Too many attempts; wait a minute.")
            raise RejectedError(
                403, "This page needs your personal link. Open the link again, or request a new one."
            )
        if not limit.allows(str(reviewer.id)):
            raise RejectedError(429, "Too many requests; wait a moment.")
        return reviewer

    def caller(request: Request) -> Reviewer:
        return identify(request, request.cookies.get(COOKIE, ""))

    def admin(request: Request) -> Reviewer:
        found = caller(request)
        if not found.admin:
            raise RejectedError(403, "This page is for administrators.")
        return found

    def voter(request: Request) -> Reviewer:
        found = caller(request)
        if found.admin:
            raise RejectedError(403, "Administrators settle ties and cannot vote.")
        return found

    async def form(
        request: Request, who: Callable[[Request], Reviewer]
    ) -> tuple[Reviewer, Mapping[str, str]]:
        """Return the sender and the fields of a form, which must come from one of our pages."""
        found = await run_in_threadpool(who, request)
        fields = _fields(await _body(request))
        if not is_form_token(fields.get("form", ""), found.token):
            raise RejectedError(403, "This form did not come from your page; reload the page.")
        return found, fields

    @app.get("/r/{token}")
    def enter(request: Request, token: str) -> Response:
        found = identify(request, token)
        response = RedirectResponse("/admin" if found.admin else "/", status_code=303)
        response.set_cookie(
            COOKIE, token, max_age=_COOKIE_S, httponly=True, samesite="lax", secure=https, path="/"
        )
        return response

    @app.get("/")
    def card(request: Request) -> Response:
        found = caller(request)
        if found.admin:
            return RedirectResponse("/admin", status_code=303)
        if not found.begun:
            return RedirectResponse("/instructions", status_code=303)
        return page("card_page", **_card_values(review, found))

    @app.get("/instructions")
    def instructions(request: Request) -> Response:
        token = form_token(caller(request).token)
        return page("instructions", form=token, questions=QUESTIONS, examples=_examples(review))

    @app.post("/begin")
    async def begin(request: Request) -> Response:
        found, _ = await form(request, caller)

        def begin() -> None:
            with review.transaction() as connection:
                connection.execute("UPDATE reviewers SET begun = 1 WHERE id = ?", (found.id,))

        await run_in_threadpool(begin)
        return RedirectResponse("/", status_code=303)

    @app.get("/card/{showing}")
    def card_image(request: Request, showing: str) -> Response:
        found = caller(request)
        return image_response(lambda: cards.card_image(review, found.id, showing))

    @app.get("/example/{image}")
    def example_image(request: Request, image: int) -> Response:
        caller(request)
        if image not in {example["id"] for example in _examples(review)}:
            raise RejectedError(404, "Example not found.")
        return image_response(lambda: cards.review_image(review, image))

    def image_response(read: Callable[[], tuple[bytes, str]]) -> Response:
        try:
            content, kind = read()
        except ReviewError as error:
            raise RejectedError(404, f"{error}.") from None
        return Response(content, media_type=kind)

    async def change(request: Request, found: Reviewer, apply: Callable[[], object]) -> Response:
        """Apply a change, and then respond with the next card."""

        def work() -> str:
            apply()
            return render_fragment("mining/review/card.html", **_card_values(review, found))

        text = await run_in_threadpool(work)
        if request.headers.get("HX-Request") == "true":
            return HTMLResponse(text)
        return RedirectResponse("/", status_code=303)

    @app.post("/vote")
    async def vote(request: Request) -> Response:
        found, fields = await form(request, voter)
        answers = {
            question.name: fields[question.name] == "yes"
            for question in QUESTIONS
            if fields.get(question.name) in ("yes", "no")
        }
        return await change(
            request,
            found,
            lambda: votes.cast_vote(
                review,
                found.id,
                fields.get("showing", ""),
                None if fields.get("skip") == "skip" else answers,
                comment=fields.get("comment", "").replace("\r\n", "\n").strip(),
            ),
        )

    @app.post("/undo")
    async def undo(request: Request) -> Response:
        found, _ = await form(request, voter)
        return await change(request, found, lambda: votes.undo_vote(review, found.id))

    @app.get("/admin")
    def admin_page(request: Request) -> Response:
        token = form_token(admin(request).token)
        return page("admin", form=token, review_status=review_status(review), min_images=MIN_IMAGES)

    @app.get("/admin/image/{image}")
    def admin_image(request: Request, image: int) -> Response:
        admin(request)
        return image_response(lambda: cards.review_image(review, image))

    @app.post("/admin/settle")
    async def settle(request: Request) -> Response:
        found, fields = await form(request, admin)
        image, decision = fields.get("image", ""), fields.get("decision", "")
        if not re.fullmatch("[0-9]{1,15}", image) or decision not in ("accept", "reject"):
            raise RejectedError(400, "A decision needs an image, and must be accept or reject.")
        await run_in_threadpool(
            lambda: votes.settle_tie(review, found.id, int(image), accepted=decision == "accept")
        )
        return RedirectResponse("/admin", status_code=303)

    @app.post("/admin/reinstate")
    async def reinstate(request: Request) -> Response:
        _, fields = await form(request, admin)
        await run_in_threadpool(lambda: votes.reinstate(review, fields.get("reviewer", "")))
        return RedirectResponse("/admin", status_code=303)

    return app


async def _body(request: Any) -> bytes:
    """Return the body of a form, without reading more than its limit."""
    content = b""
    async for chunk in request.stream():
        content += chunk
        if len(content) > _MAX_BODY:
            raise RejectedError(413, f"A form must have at most {_MAX_BODY} bytes.")
    return content


def _fields(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:  # includes invalid UTF-8
        raise RejectedError(400, "A form must be URL-encoded text in UTF-8.") from None
    return dict(pairs)


def _card_values(review: Review, found: Reviewer) -> dict[str, Any]:
    dropped = votes.is_dropped(review.connection, found.id)  # perhaps by the last vote
    return {
        "card": None if dropped else cards.next_card(review, found.id),
        "dropped": dropped,
        "form": form_token(found.token),
        "questions": QUESTIONS,
        "max_comment": votes.MAX_COMMENT,
    }


def _examples(review: Review) -> list[dict[str, Any]]:
    rows = review.connection.execute(
        "SELECT id, category, role = 'example-valid' AS valid FROM images WHERE role LIKE 'example-%' "
        "ORDER BY valid DESC, id"
    )
    return [dict(row) for row in rows]
