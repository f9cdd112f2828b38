"""The server as people start it: killed in a crowd, and driven by keyboard in a browser."""

from __future__ import annotations

import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from beaufort.mining.review import (
    ReviewError,
    ReviewRules,
    create_review,
    decisions,
    open_review,
    review_status,
)
from beaufort.mining.review import serve as serve_review
from tests.mining.review.people import People, Visitor, make_images

pytest.importorskip("uvicorn", reason="uvicorn is not installed; the extra review has it")
pytest.importorskip("fastapi", reason="FastAPI is not installed; the extra review has it")

CROWD = 20


class Server:
    """`beaufort review serve` as a process."""

    def __init__(self, file: Path) -> None:
        # A port that is kept while no server listens: nobody else is given it, and a server can take it.
        self._place = socket.socket()
        self._place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._place.bind(("127.0.0.1", 0))
        self.port = self._place.getsockname()[1]
        self.file, self.url = file, f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [
            sys.executable,
            "-m",
            "beaufort",
            "review",
            "serve",
            str(self.file),
            "--port",
            str(self.port),
        ]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        while self.process.poll() is None:
            try:
                httpx2.get(self.url, timeout=600)
            except httpx2.TransportError:
                time.sleep(0.05)
            else:
                return
        pytest.fail(f"the server ended: {self.process.communicate()[1]!r}")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.communicate()

    def close(self) -> None:
        self.kill()
        self._place.close()


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Server]]:
    started: list[Server] = []

    def start(file: Path) -> Server:
        server = Server(file)
        server.start()
        started.append(server)
        return server

    yield start
    for server in started:
        server.close()


class Scripted(threading.Thread):
    """A simulated reviewer who votes at random, retries without a reply, and records acknowledged votes."""

    def __init__(self, server: Server, name: str, token: str, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self._server, self._name, self._token, self._stop_event = server, name, token, stop
        self._random = random.Random(name)
        self.acknowledged: dict[str, str] = {}
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with httpx2.Client(base_url=self._server.url, follow_redirects=True, timeout=600) as client:
                self._review(Visitor(client))
        except Exception as error:
            self.error = error

    def _review(self, visitor: Visitor) -> None:
        page = self._until_answered(lambda: visitor.begin(self._token))
        while page is not None and 'id="vote"' in page.text and not self._stop_event.is_set():
            showing = visitor.form(page.text)["showing"]
            answers = "".join(self._random.choice("yyn") for _ in range(3))
            text = page.text
            page = self._until_answered(lambda: visitor.vote(text, answers))  # noqa: B023
            if page is not None:
                assert page.status_code == 200, page.text
                self.acknowledged[showing] = answers

    def _until_answered(self, send: Callable[[], Any]) -> Any:
        while not self._stop_event.is_set():
            try:
                return send()
            except httpx2.TransportError:
                time.sleep(0.05)
        return None


def crowded(tmp_path: Path, images: int) -> People:
    path = tmp_path / "crowd.review"
    rules = ReviewRules(votes=5, min_right=0)
    people = People(open_review_made(path, make_images(tmp_path / "images", images), rules), "")
    people.add(*(f"person {number}" for number in range(CROWD)))
    return people


def open_review_made(path: Path, images: Path, rules: ReviewRules) -> Any:
    create_review(path, images, rules=rules)
    return open_review(path)


def test_kills_in_a_crowd_lose_no_vote_and_count_none_twice(
    tmp_path: Path, serve: Callable[[Path], Server]
) -> None:
    people = crowded(tmp_path, 30)
    server = serve(people.review.path)
    stop = threading.Event()
    crowd = [Scripted(server, name, token, stop) for name, token in people.tokens.items() if name != "admin"]
    for one in crowd:
        one.start()
    for wanted in (30, 70, 110):
        while sum(len(one.acknowledged) for one in crowd) < wanted and any(one.is_alive() for one in crowd):
            time.sleep(0.01)
        server.kill()
        server.start()
    for one in crowd:
        one.join(timeout=900)
    stop.set()
    assert [one.error for one in crowd if one.error] == []
    kept = people.review.connection.execute("SELECT * FROM votes WHERE undone = 0").fetchall()
    stored = {row["showing"]: _letters(row) for row in kept}
    assert len(stored) == len(kept)  # no card counts twice
    acknowledged = {showing: message for one in crowd for showing, message in one.acknowledged.items()}
    assert len(acknowledged) >= 110
    assert {showing: stored.get(showing) for showing in acknowledged} == acknowledged
    twice = people.review.connection.execute(
        "SELECT COUNT(*) FROM (SELECT 1 FROM counted_votes GROUP BY image, reviewer HAVING COUNT(*) > 1)"
    ).fetchone()[0]
    assert twice == 0
    for image in decisions(people.review):
        assert image.yes + image.no <= 5
        assert image.decision in {"accepted", "rejected"}
    assert people.review.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    assert all(one.alpha is not None for one in review_status(people.review).questions)
    people.review.close()


def _letters(row: Any) -> str:
    return "".join("y" if row[name] else "n" for name in ("recognizable", "usable", "single"))


def test_second_server_is_rejected(tmp_path: Path, serve: Callable[[Path], Server]) -> None:
    people = crowded(tmp_path, 1)
    people.review.close()
    serve(people.review.path)
    second = subprocess.run(
        [sys.executable, "-m", "beaufort", "review", "serve", str(people.review.path), "--port", "1"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 2
    assert "already being served" in second.stderr
    assert "serving" not in second.stderr


def test_port_in_use_is_reported(tmp_path: Path) -> None:
    people = crowded(tmp_path, 1)
    people.review.close()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ReviewError, match=rf"127.0.0.1:{port}.*Address"):
            serve_review(people.review.path, port=port, started=lambda: pytest.fail("it does not serve"))


def wait_for_card(page: Any) -> None:
    """Wait for a card with its image, and for the scripts that handle keys and send answers."""
    page.wait_for_selector("#vote")
    page.wait_for_load_state("load")
    page.locator(".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added").first.wait_for(
        state="detached"
    )


def test_a_review_by_keyboard(
    tmp_path: Path, serve: Callable[[Path], Server], browse: Callable[..., Any]
) -> None:
    path = tmp_path / "keys.review"
    rules = ReviewRules(votes=1)
    people = People(open_review_made(path, make_images(tmp_path / "images", 5, roles=[]), rules), "")
    people.add("ann")
    page = browse(f"{serve(path).url}/r/{people.tokens['ann']}")
    page.wait_for_selector("#begin:focus")
    page.keyboard.press("Enter")
    wait_for_card(page)
    assert page.locator("#image img").evaluate("image => image.complete && image.naturalWidth") == 32
    done = page.locator("#card [role=status]")

    def press(*keys: str, expect: int) -> None:
        for key in keys:
            page.keyboard.press(key)
        done.filter(has_text=f"{expect} reviewed").wait_for()
        wait_for_card(page)

    page.keyboard.press("?")
    assert page.locator("#help").get_attribute("open") is not None
    page.keyboard.press("z")
    assert page.locator("#image.zoomed").count() == 1
    press("y", "y", "y", expect=1)
    press("n", "Backspace", "y", "n", "n", expect=2)
    press("u", expect=1)
    press("y", "y", "n", expect=2)
    press("s", expect=3)
    page.keyboard.press("c")
    page.keyboard.type("yes, but dim")  # letters that are keys elsewhere
    page.keyboard.press("Escape")
    press("n", "n", "n", expect=4)
    page.keyboard.press("y")
    page.keyboard.press("y")
    page.keyboard.press("y")
    page.get_by_text("No images left for now").wait_for()
    rows = people.review.connection.execute("SELECT * FROM votes WHERE undone = 0 ORDER BY id").fetchall()
    messages = ["skip" if row["skipped"] else _letters(row) for row in rows]
    assert messages == ["yyy", "yyn", "skip", "nnn", "yyy"]
    assert [row["comment"] for row in rows] == ["", "", "", "yes, but dim", ""]
    people.review.close()


def test_an_image_that_vanished_can_be_skipped_and_no_more(
    tmp_path: Path, serve: Callable[[Path], Server], browser: Any
) -> None:
    path = tmp_path / "lost.review"
    people = People(open_review_made(path, make_images(tmp_path / "images", 2, roles=[]), ReviewRules()), "")
    people.add("ann")
    for file in (tmp_path / "images").glob("*.png"):
        file.unlink()
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{serve(path).url}/r/{people.tokens['ann']}")
        page.click("#begin")
        for answered in range(2):
            page.locator("#card [role=status]").filter(has_text=f"{answered} reviewed").wait_for()
            page.get_by_text("The image cannot be displayed.").wait_for()
            assert page.locator("fieldset, #save").count() == 0
            for key in "yyy":
                page.keyboard.press(key)
            page.keyboard.press("s")
        page.get_by_text("No images left for now").wait_for()
    rows = people.review.connection.execute("SELECT skipped FROM votes").fetchall()
    assert [row["skipped"] for row in rows] == [1, 1]
    people.review.close()


def test_a_phone_and_the_admin_page(
    tmp_path: Path, serve: Callable[[Path], Server], browse: Callable[..., Any]
) -> None:
    path = tmp_path / "phone.review"
    review = open_review_made(path, make_images(tmp_path / "images", 3), ReviewRules(votes=2))
    people = People(review, "")
    people.add("ann", "bob")
    people.tokens["chief"] = _invite_admin(review)
    server = serve(path)
    for name, answer in (("ann", "yes"), ("bob", "no")):
        page = browse(
            f"{server.url}/r/{people.tokens[name]}",
            viewport={"width": 390, "height": 844},
            has_touch=True,
            is_mobile=True,
        )
        page.locator("#begin").tap()
        wait_for_card(page)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 390
        for number in range(3):
            page.locator(f"fieldset >> nth={number} >> label").filter(has_text=answer.capitalize()).tap()
        page.locator("#card [role=status]").filter(has_text="1 reviewed").wait_for()
    page = browse(f"{server.url}/r/{people.tokens['chief']}")
    assert page.locator("#reviewers tbody tr").count() == 2
    people.review.close()


def _invite_admin(review: Any) -> str:
    from beaufort.mining.review import invite

    return invite(review, "chief", admin=True)
