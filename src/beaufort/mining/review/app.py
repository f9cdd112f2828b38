"""The pages of a review. Requests name cards by random names; no part of one ever becomes a path.

Annotations are real objects here, because FastAPI reads them and is imported with the first app alone.
"""

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
    """A request that gets no answer but this status and sentence."""

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
    """The web application of a review.

    Args:
        review: the open review.
        names: hosts that requests may ask for.
        https: whether the cookie is for HTTPS alone.
        limit: on requests of one reviewer; 20 a second, 60 at once, if not given.
        failures: on wrong tokens from one address; one in six seconds, 20 at once, if not given.
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

    def refuse(status: int, message: str) -> Response:
        return HTMLResponse(_page("mining/review/refused.html", review, message=message), status_code=status)

    @app.exception_handler(RejectedError)
    async def refused(request: Request, error: RejectedError) -> Response:
        return refuse(error.status, error.message)

    @app.exception_handler(ReviewError)
    async def impossible(request: Request, error: ReviewError) -> Response:
        return refuse(409, f"Not saved: {error}.")

    @app.exception_handler(HTTPException)
    async def not_there(request: Request, error: HTTPException) -> Response:
        return refuse(error.status_code, "There is nothing here.")

    def identify(request: Request, token: str) -> Reviewer:
        """Return the owner of a token; whoever tries wrong ones is soon rejected without a look."""
        reviewer = find_reviewer(review, token)
        if reviewer is None:
            if not failures.allows(request.client.host if request.client else ""):
                raise RejectedError(429, "Too many attempts; wait a minute.")
            raise RejectedError(
                403, "This page needs your personal link. Open it once more, or ask for a new one."
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
            raise RejectedError(403, "Administrators settle ties, and do not vote.")
        return found

    async def form(
        request: Request, who: Callable[[Request], Reviewer]
    ) -> tuple[Reviewer, Mapping[str, str]]:
        """The fields of a form that one of our pages sent."""
        found = await run_in_threadpool(who, request)
        fields = _fields(await _body(request))
        if not is_form_token(fields.get("form", ""), found.token):
            raise RejectedError(403, "This form did not come from your page; reload it.")
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
        return HTMLResponse(_page("mining/review/card_page.html", review, **_card_values(review, found)))

    @app.get("/instructions")
    def instructions(request: Request) -> Response:
        found = caller(request)
        return HTMLResponse(
            _page(
                "mining/review/instructions.html",
                review,
                form=form_token(found.token),
                questions=QUESTIONS,
                examples=_examples(review),
            )
        )

    @app.post("/begin")
    async def begin(request: Request) -> Response:
        found, _ = await form(request, caller)
        await run_in_threadpool(_begin, review, found.id)
        return RedirectResponse("/", status_code=303)

    @app.get("/card/{showing}")
    def card_image(request: Request, showing: str) -> Response:
        found = caller(request)
        return _image(lambda: cards.card_image(review, found.id, showing))

    @app.get("/example/{image}")
    def example_image(request: Request, image: int) -> Response:
        caller(request)
        if image not in {example["id"] for example in _examples(review)}:
            raise RejectedError(404, "There is no such example.")
        return _image(lambda: cards.review_image(review, image))

    def _image(read: Callable[[], tuple[bytes, str]]) -> Response:
        try:
            content, kind = read()
        except ReviewError as error:
            raise RejectedError(404, f"{error}.") from None
        return Response(content, media_type=kind)

    async def after(request: Request, found: Reviewer, change: Callable[[], object]) -> Response:
        """Carry a change out; only then answer with the next card."""

        def work() -> str:
            change()
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
        skipped = fields.get("skip") == "skip"
        return await after(
            request,
            found,
            lambda: votes.cast_vote(
                review,
                found.id,
                fields.get("showing", ""),
                None if skipped else answers,
                comment=fields.get("comment", "").replace("\r\n", "\n").strip(),  # forms send both
            ),
        )

    @app.post("/undo")
    async def undo(request: Request) -> Response:
        found, _ = await form(request, voter)
        return await after(request, found, lambda: votes.undo_vote(review, found.id))

    @app.get("/admin")
    def admin_page(request: Request) -> Response:
        found = admin(request)
        return HTMLResponse(
            _page(
                "mining/review/admin.html",
                review,
                form=form_token(found.token),
                standing=review_status(review),
                min_images=MIN_IMAGES,
            )
        )

    @app.get("/admin/image/{image}")
    def admin_image(request: Request, image: int) -> Response:
        admin(request)
        return _image(lambda: cards.review_image(review, image))

    @app.post("/admin/settle")
    async def settle(request: Request) -> Response:
        found, fields = await form(request, admin)
        image, decision = fields.get("image", ""), fields.get("decision", "")
        if not (image.isascii() and image.isdigit() and len(image) < 16) or decision not in (
            "accept",
            "reject",
        ):
            raise RejectedError(400, "A ruling must name an image, and accept or reject it.")
        await run_in_threadpool(
            lambda: votes.settle_tie(review, found.id, int(image), accepted=decision == "accept")
        )
        return RedirectResponse("/admin", status_code=303)

    return app


async def _body(request: Any) -> bytes:
    """What a form sent; more than a form can have is not read."""
    content = b""
    async for piece in request.stream():
        content += piece
        if len(content) > _MAX_BODY:
            raise RejectedError(413, f"A form must have at most {_MAX_BODY} bytes.")
    return content


def _fields(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(
            body.decode("utf-8"), keep_blank_values=True, errors="strict", max_num_fields=_MAX_FIELDS
        )
    except ValueError:  # also what is no UTF-8
        raise RejectedError(400, "A form must be URL-encoded text in UTF-8.") from None
    return dict(pairs)


def _page(template: str, review: Review, **values: Any) -> str:
    return render(
        template,
        styles=STYLES,
        scripts=SCRIPTS,
        data={},
        served=True,
        title=review.title,
        eyebrow="review",
        rules=review.rules,
        **values,
    )


def _card_values(review: Review, found: Reviewer) -> dict[str, Any]:
    dropped = votes.is_dropped(review.connection, found.id)  # perhaps by the vote just cast
    return {
        "card": None if dropped else cards.next_card(review, found.id),
        "dropped": dropped,
        "form": form_token(found.token),
        "questions": QUESTIONS,
        "max_comment": votes.MAX_COMMENT,
    }


def _begin(review: Review, reviewer: int) -> None:
    with review.transaction() as connection:
        connection.execute("UPDATE reviewers SET begun = 1 WHERE id = ?", (reviewer,))


def _examples(review: Review) -> list[dict[str, Any]]:
    rows = review.connection.execute(
        "SELECT id, category, role = 'example-valid' AS valid FROM images WHERE role LIKE 'example-%' "
        "ORDER BY valid DESC, id"
    )
    return [dict(row) for row in rows]
