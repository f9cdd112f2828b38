"""The pages of a review, and everybody who should not get in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from beaufort._core.pages import bundle
from beaufort._core.pages.assets import asset
from beaufort.mining.review import ReviewRules, create_review, decisions, open_review, review_status, votes
from beaufort.mining.review.access import RateLimit
from beaufort.mining.review.server import _own_names
from tests.mining.review.people import People, Visitor, make_images

pytest.importorskip("fastapi", reason="FastAPI is not installed; the extra review has it")

from starlette.testclient import TestClient

from beaufort.mining.review.app import COOKIE, SCRIPTS, make_app

PAGES = ["/", "/instructions", "/card/" + "0" * 32, "/example/1", "/admin", "/admin/image/1"]
FORMS = ["/begin", "/vote", "/undo", "/admin/settle"]


def counted(people: People) -> int:
    return int(people.review.connection.execute("SELECT COUNT(*) FROM votes").fetchone()[0])


def test_from_the_link_to_the_last_image(visitor: Visitor, people: People) -> None:
    page = visitor.enter(people.tokens["ann"])
    assert "Instructions</h2>" in page.text
    assert page.text.count('src="/example/') == 2
    page = visitor.begin(people.tokens["ann"])
    cards = 0
    while 'id="vote"' in page.text:
        image = visitor.client.get(re.findall(r'src="(/card/[0-9a-f]+)"', page.text)[0])
        assert image.headers["content-type"] == "image/png"
        page = visitor.vote(page.text, "yyy" if ">good chair" in page.text else "nyy")
        cards += 1
    assert cards > 6
    assert "No images left" in page.text
    assert sum(one.yes for one in decisions(people.review)) == 6


def test_dropped_reviewer_is_informed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "many.review"
    create_review(path, make_images(tmp_path / "images", 12), rules=ReviewRules(check_every=2))
    people = People(open_review(path), "")
    people.add("ann")
    with TestClient(make_app(people.review), base_url="http://127.0.0.1") as client:
        visitor = Visitor(client)
        page = visitor.begin(people.tokens["ann"])
        cards = 0
        while 'id="vote"' in page.text:
            page = visitor.vote(page.text, "nyy" if ">good chair" in page.text else "yyy")
            cards += 1
        assert "Your review has ended" in page.text
        assert "All images that you can judge" not in page.text
        assert client.post("/undo", data=visitor.form(page.text)).status_code == 409
    found = review_status(people.review).reviewers[0]
    assert found.dropped
    assert found.votes == cards
    assert found.checks == 5  # no card came after the one that decided
    people.review.close()


def test_htmx_gets_the_next_card_alone(visitor: Visitor, people: People) -> None:
    page = visitor.begin(people.tokens["ann"])
    visitor.client.headers["HX-Request"] = "true"
    card = visitor.vote(page.text)
    assert card.status_code == 200
    assert card.text.startswith('<div id="card"')
    assert "<html" not in card.text


def test_unsaved_vote_is_reported(visitor: Visitor, people: People) -> None:
    page = visitor.begin(people.tokens["ann"])
    response = visitor.vote(page.text, "yy")
    assert response.status_code == 409
    assert "every question" in response.text
    assert visitor.vote(page.text, comment="x" * 1001).status_code == 409
    assert counted(people) == 0


def test_comments_and_names_are_text(visitor: Visitor, people: People) -> None:
    for name, answers in (("ann", "yyy"), ("bob", "nnn")):
        page = visitor.begin(people.tokens[name])
        visitor.vote(page.text, answers, comment="<script>alert(1)</script>")
    visitor.enter(people.tokens["admin"])
    text = visitor.client.get("/admin").text
    assert "&lt;script&gt;alert(1)" in text
    assert "<script>alert(1)" not in text


def test_a_comment_of_many_lines_is_as_long_as_the_page_counts_it(visitor: Visitor, people: People) -> None:
    """Browsers count the end of a line as one character, and send two of them."""
    comment = "\r\n".join(["line"] * 200)
    page = visitor.begin(people.tokens["ann"])
    assert visitor.vote(page.text, comment=comment).status_code == 200
    (kept,) = people.review.connection.execute("SELECT comment FROM votes").fetchone()
    assert kept == comment.replace("\r\n", "\n")
    assert len(kept) <= votes.MAX_COMMENT < len(comment)


def test_one_vote_is_one_vote(tmp_path: Path) -> None:
    path = tmp_path / "quick.review"
    admin = create_review(path, make_images(tmp_path / "images"), rules=ReviewRules(votes=1, min_right=0.995))
    review = open_review(path)
    with TestClient(make_app(review), base_url="http://127.0.0.1") as client:
        Visitor(client).enter(admin)
        text = client.get("/admin").text
    review.close()
    assert "first vote" in text
    assert "One vote decides.</p>" in text
    assert "99.5 % passed checks" in text


def test_the_admin_reinstates_a_reviewer(visitor: Visitor, people: People) -> None:
    people.review.connection.execute("UPDATE reviewers SET dropped = 1 WHERE name = 'ann'")
    visitor.enter(people.tokens["bob"])
    form = {"form": visitor.form(visitor.client.get("/instructions").text)["form"], "reviewer": "ann"}
    assert visitor.client.post("/admin/reinstate", data=form).status_code == 403
    text = visitor.enter(people.tokens["admin"]).text
    assert "Reinstate" in text
    assert visitor.client.post("/admin/reinstate", data={"reviewer": "ann"}).status_code == 403
    form["form"] = visitor.form(text)["form"]
    page = visitor.client.post("/admin/reinstate", data=form)
    assert page.status_code == 200
    assert "Reinstate" not in page.text
    assert not any(one.dropped for one in review_status(people.review).reviewers)
    assert visitor.client.post("/admin/reinstate", data=form).status_code == 409


def test_the_admin_settles_a_tie(visitor: Visitor, people: People) -> None:
    people.review.connection.execute(
        "UPDATE images SET decision = 'tied', yes = 1, no = 1 WHERE file = '000.png'"
    )
    image = decisions(people.review)[0]
    page = visitor.enter(people.tokens["admin"])
    assert "1 tied" in page.text
    fields = {**visitor.form(page.text), "image": str(image.id), "decision": "accept"}
    page = visitor.client.post("/admin/settle", data=fields)
    assert "accepted, settled" in page.text
    fields["image"] = "99999"
    assert visitor.client.post("/admin/settle", data=fields).status_code == 409
    fields["image"] = "²"
    assert visitor.client.post("/admin/settle", data=fields).status_code == 400


@pytest.mark.parametrize("token", ["", "wrong", "a" * 5000, "ann", "%00", "💥"])
def test_no_token_no_page(visitor: Visitor, people: People, token: str) -> None:
    headers = [(b"cookie", f"{COOKIE}={token}".encode())]
    if token:
        assert visitor.client.get(f"/r/{token}").status_code == 403
    for path in PAGES:
        assert visitor.client.get(path, headers=headers).status_code == 403, path
    for path in FORMS:
        assert visitor.client.post(path, headers=headers, data={"form": "x"}).status_code == 403, path
    assert counted(people) == 0


def test_a_reviewer_is_no_admin(visitor: Visitor, people: People) -> None:
    page = visitor.begin(people.tokens["ann"])
    for path in ("/admin", "/admin/image/1"):
        assert visitor.client.get(path).status_code == 403
    fields = {**visitor.form(page.text), "image": "1", "decision": "accept"}
    assert visitor.client.post("/admin/settle", data=fields).status_code == 403


def test_an_admin_does_not_vote(visitor: Visitor, people: People) -> None:
    visitor.enter(people.tokens["admin"])
    fields = visitor.form(visitor.client.get("/instructions").text)
    for path in ("/undo", "/vote"):  # either would return a card
        assert visitor.client.post(path, data=fields).status_code == 403
    assert people.review.connection.execute("SELECT COUNT(*) FROM showings").fetchone()[0] == 0


def test_only_our_own_forms_count(visitor: Visitor, people: People) -> None:
    """A page elsewhere can make a browser send a form, with the cookie; it cannot know what ours carry."""
    page = visitor.begin(people.tokens["ann"])
    fields = {**visitor.form(page.text), "recognizable": "yes", "usable": "yes", "single": "yes"}
    others = visitor.form(visitor.begin(people.tokens["bob"]).text)["form"]
    visitor.enter(people.tokens["ann"])
    for wrong in ("", "0" * 64, others, "ä"):
        assert visitor.client.post("/vote", data={**fields, "form": wrong}).status_code == 403
    for path in FORMS[:3]:
        assert visitor.client.post(path, data={}).status_code == 403
        assert visitor.client.get(path).status_code == 405
    assert counted(people) == 0


def test_the_cookie(visitor: Visitor, people: People) -> None:
    response = visitor.client.get(f"/r/{people.tokens['ann']}", follow_redirects=False)
    cookie = response.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    with TestClient(make_app(people.review, https=True), base_url="http://127.0.0.1") as client:
        response = client.get(f"/r/{people.tokens['ann']}", follow_redirects=False)
    assert "secure" in response.headers["set-cookie"].lower()


@pytest.mark.parametrize("path", ["/", "/none", "/card/x", "/r/wrong", "/example/x"])
def test_security_headers_of_every_response(visitor: Visitor, people: People, path: str) -> None:
    visitor.begin(people.tokens["ann"])
    headers = visitor.client.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_only_known_host_names_are_served(people: People) -> None:
    """A page whose name leads to this machine must not talk to the server here."""
    with TestClient(make_app(people.review), base_url="http://evil.example") as client:
        assert client.get(f"/r/{people.tokens['ann']}").status_code == 400


def test_a_server_is_reached_by_its_address_of_ipv6(people: People) -> None:
    app = make_app(people.review, names=_own_names("::1"))
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for host, status in (("[::1]:8765", 403), ("[::1]", 403), ("[::2]:8765", 400)):
            assert client.get("/", headers={"Host": host}).status_code == status, host


@pytest.mark.parametrize(
    "path",
    [
        "/card/../../../etc/passwd",
        "/card/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/card/..%5c..%5cwindows",
        "/example/../list.csv",
        "/admin/image/..%2flist.csv",
        "/static/list.csv",
        "/images/000.png",
        "/openapi.json",
        "/docs",
    ],
)
def test_no_path_reaches_the_disk(visitor: Visitor, people: People, path: str) -> None:
    for name in ("ann", "admin"):
        visitor.enter(people.tokens[name])
        assert visitor.client.get(path).status_code in {403, 404, 422}


def test_no_uploads_and_no_large_forms(visitor: Visitor, people: People) -> None:
    page = visitor.begin(people.tokens["ann"])
    form = visitor.form(page.text)
    large = visitor.client.post("/vote", data={**form, "comment": "x" * 20_000})
    assert large.status_code == 413
    upload = visitor.client.post("/vote", data=form, files={"file": ("a.png", b"\x89PNG", "image/png")})
    assert upload.status_code in {400, 403}
    assert visitor.client.post("/vote", content=b"\xff\xfe=1").status_code == 400
    assert visitor.client.post("/vote", content=b"&".join([b"a=1"] * 50)).status_code == 400
    assert counted(people) == 0


def test_the_rate_is_limited(people: People) -> None:
    now = 0.0
    limits: Any = {
        "limit": RateLimit(1, 4, clock=lambda: now),
        "failures": RateLimit(1, 3, clock=lambda: now),
    }
    with TestClient(make_app(people.review, **limits), base_url="http://127.0.0.1") as client:
        messages = [client.get("/r/wrong").status_code for _ in range(5)]
        assert messages == [403] * 3 + [429] * 2
        messages = [
            client.get(f"/r/{people.tokens['ann']}", follow_redirects=False).status_code for _ in range(6)
        ]
        assert messages == [303] * 4 + [429] * 2
        assert client.get(f"/r/{people.tokens['bob']}", follow_redirects=False).status_code == 303
        now = 1.0
        assert client.get("/instructions").status_code == 200


def test_limits_forget_the_silent(people: People) -> None:
    limit = RateLimit(1, 1, clock=lambda: 0.0)
    for caller in range(20_000):
        assert limit.allows(str(caller))
    assert len(limit._callers) <= 10_000


TEXT = st.text(max_size=40)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    path=st.sampled_from(["/", "/r/", "/card/", "/example/", "/admin", "/admin/image/", *FORMS]),
    more=TEXT,
    fields=st.dictionaries(
        st.sampled_from(["form", "showing", "recognizable", "comment", "skip", "image", "decision"]) | TEXT,
        TEXT,
        max_size=6,
    ),
    right_form=st.booleans(),
    who=st.sampled_from(["ann", "admin"]),
)
def test_nothing_breaks_it(
    people: People, path: str, more: str, fields: dict[str, str], right_form: bool, who: str
) -> None:
    """Every request gets an error or a page, never a server error."""
    from urllib.parse import quote

    limits: Any = {"limit": RateLimit(1, 10_000), "failures": RateLimit(1, 10_000)}
    client = TestClient(make_app(people.review, **limits), base_url="http://127.0.0.1")
    visitor = Visitor(client)
    form = visitor.form(visitor.enter(people.tokens[who]).text)
    sent = {**fields, **form} if right_form else fields
    sent = {
        k.encode("utf-8", "replace").decode(): v.encode("utf-8", "replace").decode() for k, v in sent.items()
    }
    url = path + (quote(more, safe="", errors="replace") if path.endswith("/") else "")
    assert client.get(url).status_code < 500
    assert client.post(url, data=sent).status_code < 500


def test_htmx_is_kept_as_it_came() -> None:
    """The license is in the same folder, and no page needs `eval`, which the policy forbids."""
    from hashlib import sha256
    from importlib.resources import files

    folder = files("beaufort.mining.review") / "data"
    assert "Zero-Clause BSD" in (folder / "htmx.LICENSE").read_text(encoding="utf-8")
    assert (
        sha256((folder / "htmx.min.js").read_bytes()).hexdigest()
        == "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717"
    )
    script = bundle(*map(asset, SCRIPTS))
    assert "allowEval = false" in script


def test_agreement_on_the_page_is_that_of_the_votes(visitor: Visitor, people: People) -> None:
    for name in ("ann", "bob"):
        page = visitor.begin(people.tokens[name])
        while 'id="vote"' in page.text:
            page = visitor.vote(page.text, "yyy" if ">good" in page.text else "nnn")
    found = review_status(people.review)
    assert [one.about for one in found.questions] == ["recognizable", "usable", "single", "approved"]
    assert all(one.alpha is None for one in found.questions)  # everybody said yes to all images
    visitor.enter(people.tokens["admin"])
    assert "undefined" in visitor.client.get("/admin").text
