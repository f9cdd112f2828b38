"""Making a review, voting, deciding, dropping, settling."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from beaufort.cli import app
from beaufort.metrics.stats import fleiss_kappa, krippendorff_alpha
from beaufort.mining.review import (
    QUESTIONS,
    Checks,
    Review,
    ReviewError,
    ReviewRules,
    create_review,
    decisions,
    invite,
    open_review,
    reinstate,
    review_status,
)
from beaufort.mining.review.cards import _repetition, card_image, next_card
from beaufort.mining.review.rules import decide
from beaufort.mining.review.server import only_server
from beaufort.mining.review.votes import cast_vote, settle_tie, undo_vote
from tests.commands import invoke
from tests.mining.review.people import People, make_images

YES = {question.name: True for question in QUESTIONS}
NO = {**YES, "usable": False}


def answer_all(people: People, name: str, *, wrong: bool = False, most: int = 100) -> int:
    """Answer by the category, or the opposite, until no card is left."""
    reviewer = people.id_of(name)
    done = 0
    while done < most and (card := next_card(people.review, reviewer)) is not None:
        right = card.category.startswith("good")
        cast_vote(people.review, reviewer, card.showing, YES if right != wrong else NO)
        done += 1
    return done


def small(tmp_path: Path, *, count: int = 1, **rules: float) -> People:
    """A review without checks."""
    path = tmp_path / "small.review"
    chosen = ReviewRules(**rules)  # type: ignore[arg-type]
    admin = create_review(path, make_images(tmp_path / "small", count, roles=[]), rules=chosen)
    people = People(open_review(path), admin)
    people.add("ann", "bob", "cem", "dee")
    return people


def long_review(tmp_path: Path, count: int = 30) -> Review:
    """Many images, with checks among them."""
    path = tmp_path / "long.review"
    create_review(path, make_images(tmp_path / "long", count))
    return open_review(path)


def vote(people: People, name: str, approves: bool) -> None:
    card = next_card(people.review, people.id_of(name))
    assert card is not None
    cast_vote(people.review, people.id_of(name), card.showing, YES if approves else NO)


def tallies(review: Review) -> list[tuple[int, int, str]]:
    return [(one.yes, one.no, one.decision) for one in decisions(review)]


def test_two_of_three_decide_early(tmp_path: Path) -> None:
    people = small(tmp_path, votes=3)
    vote(people, "ann", True)
    assert tallies(people.review) == [(1, 0, "open")]
    vote(people, "bob", True)
    assert tallies(people.review) == [(2, 0, "accepted")]
    assert next_card(people.review, people.id_of("cem")) is None


def test_no_image_gets_more_seats_than_votes(tmp_path: Path) -> None:
    people = small(tmp_path, votes=2)
    assert next_card(people.review, people.id_of("ann")) is not None
    assert next_card(people.review, people.id_of("bob")) is not None
    assert next_card(people.review, people.id_of("cem")) is None


def test_a_seat_that_nobody_uses_is_given_on_and_a_late_vote_still_counts(tmp_path: Path) -> None:
    people = small(tmp_path, votes=1, seat_s=0)
    late = next_card(people.review, people.id_of("ann"))
    assert late is not None
    vote(people, "bob", True)
    cast_vote(people.review, people.id_of("ann"), late.showing, NO)
    assert tallies(people.review) == [(1, 1, "tied")]


def test_ties_are_settled_and_nothing_else_is(tmp_path: Path) -> None:
    people = small(tmp_path, votes=2)
    image = decisions(people.review)[0].id
    with pytest.raises(ReviewError, match=r"tied.* open"):
        settle_tie(people.review, people.id_of("admin"), image, accepted=True)
    vote(people, "ann", True)
    vote(people, "bob", False)
    assert tallies(people.review) == [(1, 1, "tied")]
    settle_tie(people.review, people.id_of("admin"), image, accepted=False)
    assert tallies(people.review) == [(1, 1, "rejected")]
    assert decisions(people.review)[0].settled
    assert [one.id for one in review_status(people.review).discussed] == [image]
    undo_vote(people.review, people.id_of("bob"))
    assert tallies(people.review) == [(1, 0, "open")]  # the ruling was about a tie that no longer exists


def test_repeated_vote_counts_once_and_another_is_rejected(tmp_path: Path) -> None:
    people = small(tmp_path)
    ann = people.id_of("ann")
    card = next_card(people.review, ann)
    assert card is not None
    cast_vote(people.review, ann, card.showing, YES, comment="dark")
    cast_vote(people.review, ann, card.showing, YES, comment="dark")
    assert tallies(people.review) == [(1, 0, "open")]
    with pytest.raises(ReviewError, match="undo it first"):
        cast_vote(people.review, ann, card.showing, NO, comment="dark")
    assert decisions(people.review)[0].comments == ("dark",)


def test_undo_brings_the_card_back(tmp_path: Path) -> None:
    people = small(tmp_path, count=3)
    ann = people.id_of("ann")
    first = next_card(people.review, ann)
    assert first is not None
    cast_vote(people.review, ann, first.showing, YES)
    second = next_card(people.review, ann)
    assert second is not None
    assert second != first
    assert undo_vote(people.review, ann)
    again = next_card(people.review, ann)
    assert again is not None
    assert again.showing == first.showing
    cast_vote(people.review, ann, first.showing, NO)
    after = next_card(people.review, ann)
    assert after is not None
    assert after.showing == second.showing
    assert sorted(tallies(people.review))[-1] == (0, 1, "open")
    assert undo_vote(people.review, ann)
    assert not undo_vote(people.review, ann)


def test_agreement_is_that_of_the_votes_that_every_image_gets(tmp_path: Path) -> None:
    """The third vote goes to three images only, those on which the first two disagree."""
    people = small(tmp_path, count=12, votes=3)
    approved = {"ann": {0, 2, 4, 6, 8, 10}, "bob": {1, 4, 6, 8, 10}, "cem": set(range(12))}
    for name, liked in approved.items():
        reviewer = people.id_of(name)
        while (card := next_card(people.review, reviewer)) is not None:
            number = int(card.category.split()[-1])
            cast_vote(people.review, reviewer, card.showing, YES if number in liked else NO)
    assert sorted(yes + no for yes, no, _ in tallies(people.review)) == [2] * 9 + [3] * 3
    counts = [[1, 1]] * 3 + [[2, 0], [0, 2]] * 4 + [[2, 0]]
    found = {one.about: one for one in review_status(people.review).questions}["approved"]
    wanted = fleiss_kappa(counts), krippendorff_alpha(counts)
    assert found.fleiss is not None
    assert found.alpha is not None
    assert (found.fleiss.value, found.alpha.value) == pytest.approx([one.value for one in wanted if one])
    assert found.fleiss.value < 0.6
    (pair,) = review_status(people.review).pairs
    assert (pair.first, pair.second, pair.images) == ("ann", "bob", 12)


def test_a_skip_is_no_vote(tmp_path: Path) -> None:
    people = small(tmp_path, votes=1)
    ann = people.id_of("ann")
    card = next_card(people.review, ann)
    assert card is not None
    cast_vote(people.review, ann, card.showing, None)
    assert next_card(people.review, ann) is None
    assert tallies(people.review) == [(0, 0, "open")]
    assert next_card(people.review, people.id_of("bob")) is not None


def test_nobody_votes_on_the_card_of_another(tmp_path: Path) -> None:
    people = small(tmp_path)
    card = next_card(people.review, people.id_of("ann"))
    assert card is not None
    with pytest.raises(ReviewError, match="shown to you"):
        cast_vote(people.review, people.id_of("bob"), card.showing, YES)
    with pytest.raises(ReviewError, match="shown to you"):
        card_image(people.review, people.id_of("bob"), card.showing)
    with pytest.raises(ReviewError, match="every question"):
        cast_vote(people.review, people.id_of("ann"), card.showing, {"usable": True})


def test_an_unreliable_reviewer_is_dropped_and_the_votes_with_them(tmp_path: Path) -> None:
    people = People(long_review(tmp_path), "")
    people.add("ann", "bob", "cem")
    answer_all(people, "cem", wrong=True)
    found = {one.name: one for one in review_status(people.review).reviewers}
    assert found["cem"].dropped
    assert found["cem"].checks >= 4
    assert all(tally == (0, 0, "open") for tally in tallies(people.review))
    with pytest.raises(ReviewError, match="votes no longer count"):
        undo_vote(people.review, people.id_of("cem"))  # or they could try the check again
    assert answer_all(people, "ann") > 30  # with checks among them
    answer_all(people, "bob")
    found = {one.name: one for one in review_status(people.review).reviewers}
    assert not found["ann"].dropped
    assert found["ann"].checks_right == found["ann"].checks > 4
    assert all(one[2] == "accepted" for one in tallies(people.review))


def test_a_reliable_reviewer_is_dropped_with_the_stated_probability() -> None:
    """At 90 % passed checks of each kind, over 300 checks, in 1,000 simulated reviews."""
    rules, rng = ReviewRules(), np.random.default_rng(0)

    def dropped(fractions: tuple[float, float, float]) -> int | None:
        """After how many checks a reviewer is dropped."""
        counts = np.zeros((3, 2), int)
        for check in range(300):
            kind = 2 if check % 2 else int(rng.integers(2))
            counts[kind] += (rng.random() < fractions[kind], 1)
            valid, invalid, repeated = ((int(right), int(of)) for right, of in counts)
            if rules.drops(Checks(valid, invalid, repeated)):
                return check + 1
        return None

    reliable = [dropped((0.9, 0.9, 0.9)) for _ in range(1000)]
    assert sum(one is not None for one in reliable) / 1000 < 0.01
    for unreliable in ((0.5, 0.5, 0.5), (1, 0, 1), (0, 1, 1), (0.6, 0.6, 0.9)):  # (1, 0, 1): always yes
        found = [dropped(unreliable) for _ in range(50)]
        assert all(found), unreliable
        assert np.mean([one for one in found if one]) < 100, unreliable


def test_extreme_rules() -> None:
    assert ReviewRules(min_right=1).drops(Checks(valid=(9, 10)))
    assert not ReviewRules(min_right=1).drops(Checks(valid=(10, 10)))
    assert not ReviewRules(min_right=0).drops(Checks(valid=(0, 1000)))
    assert ReviewRules().drops(Checks(valid=(0, 100_000)))


def test_a_reinstated_reviewer_counts_again(tmp_path: Path) -> None:
    people = People(long_review(tmp_path, 60), "")
    people.add("cem", "dee")
    done = 0
    while not review_status(people.review).reviewers[0].dropped:
        done += answer_all(people, "cem", wrong=True, most=1)
    assert tallies(people.review)[0] == (0, 0, "open")
    reinstate(people.review, "cem")
    assert sum(no for _, no, _ in tallies(people.review)) > 0
    assert answer_all(people, "cem") > 5  # new checks are passed
    (cem, _) = review_status(people.review).reviewers
    assert not cem.dropped
    assert cem.votes > done
    for name in ("cem", "dee", "nobody"):
        with pytest.raises(ReviewError, match=name):
            reinstate(people.review, name)
    answer_all(people, "dee", wrong=True)
    assert review_status(people.review).reviewers[1].dropped
    result = CliRunner().invoke(app, ["review", "reinstate", str(people.review.path), "dee"])
    assert result.exit_code == 0
    assert not any(one.dropped for one in review_status(people.review).reviewers)


def test_a_review_of_an_earlier_version_is_opened(people: People) -> None:
    people.review.connection.execute("ALTER TABLE reviewers DROP COLUMN reinstated")
    rules = '{"votes": 3, "check_every": 5, "min_checks": 4, "min_right": 0.75, "seat_s": 900.0}'
    people.review.connection.execute("UPDATE about SET value = ? WHERE name = 'rules'", (rules,))
    opened = open_review(people.review.path)
    assert opened.rules == ReviewRules(min_right=0.75)
    answer_all(People(opened, ""), "ann")
    assert review_status(opened).reviewers[0].checks > 0
    opened.close()


def test_the_number_of_open_images_does_not_reveal_checks(tmp_path: Path) -> None:
    path = tmp_path / "one.review"
    create_review(path, make_images(tmp_path / "one", 30), rules=ReviewRules(votes=1))
    people = People(open_review(path), "")
    people.add("ann")
    seen = []
    while (card := next_card(people.review, people.id_of("ann"))) is not None:
        seen.append(card.left)
        cast_vote(people.review, people.id_of("ann"), card.showing, YES if "good" in card.category else NO)
    blocks = [seen[start : start + 5] for start in range(0, len(seen), 5)]
    assert all(len(set(block)) == 1 for block in blocks)
    assert len({block[0] for block in blocks}) == len(blocks) > 6


def test_checks_look_like_other_cards(tmp_path: Path) -> None:
    people = People(long_review(tmp_path), "")
    people.add("ann")
    ann = people.id_of("ann")
    fields = set()
    while (card := next_card(people.review, ann)) is not None:
        fields |= set(vars(card))
        assert len(card.showing) == 32
        cast_vote(people.review, ann, card.showing, YES if card.category.startswith("good") else NO)
    rows = people.review.connection.execute(
        "SELECT s.again, i.role FROM showings s JOIN images i ON i.id = s.image ORDER BY s.rowid"
    ).fetchall()
    kinds = [(row["again"], row["role"]) for row in rows]
    assert {(1, ""), (0, "control-valid"), (0, "control-invalid"), (0, "")} == set(kinds)
    assert fields == {"showing", "category", "done", "left"}
    for block in range(len(kinds) // 5):
        assert sum(kind != (0, "") for kind in kinds[5 * block : 5 * block + 5]) <= 1


def give_votes(people: People, reviewer: int, images: range, role: str = "") -> None:
    """Images of these numbers, each with a vote of the reviewer."""
    for rows in (
        "images (id, file, sha256, type, category, role) SELECT ?1, ?1, '', '', '', ?3 WHERE ?2",
        "showings (id, reviewer, image, again, shown, answered) SELECT ?1, ?2, ?1, 0, 0, 1 WHERE ?3 = ?3",
        "votes (showing, skipped, comment, at) SELECT ?1, 0, '', 0 WHERE ?2 AND ?3 = ?3",
    ):
        with people.review.transaction() as transaction:
            transaction.executemany(f"INSERT INTO {rows}", [(number, reviewer, role) for number in images])


def steps(connection: sqlite3.Connection, call: Callable[[], object]) -> int:
    """Return the number of database steps of a query."""
    counted: list[int] = []
    connection.set_progress_handler(partial(counted.append, 1), 1)
    call()
    connection.set_progress_handler(None, 0)
    return len(counted)


def test_a_repetition_is_found_fast_after_many_votes(people: People) -> None:
    """The work of the database grows with the votes of a reviewer, not with their square."""
    connection, ann = people.review.connection, people.id_of("ann")
    work = []
    for first in (1000, 1400):
        give_votes(people, ann, range(first, first + 400))
        assert _repetition(connection, ann) == 1000
        work.append(steps(connection, lambda: _repetition(connection, ann)))
    assert work[1] < 3 * work[0]


def test_a_card_takes_no_more_work_after_many_votes_of_others(people: People) -> None:
    """Finding an open card uses indexes, which older reviews get when they are opened."""
    connection, ann, bob = people.review.connection, people.id_of("ann"), people.id_of("bob")
    connection.executescript("DROP INDEX waiting; DROP INDEX given")
    open_review(people.review.path).close()
    work = []
    for first in (1000, 2000):
        give_votes(people, bob, range(first, first + 1000), "example-valid")
        next_card(people.review, ann)
        work.append(steps(connection, lambda: next_card(people.review, ann)))
    assert work[0] == work[1]


def test_undo_takes_no_more_work_after_many_own_votes(people: People) -> None:
    connection, ann = people.review.connection, people.id_of("ann")
    work = []
    for first in (1000, 2000):
        give_votes(people, ann, range(first, first + 1000))
        work.append(steps(connection, lambda: undo_vote(people.review, ann)))
    assert work[1] < 1.5 * work[0]


def test_the_vote_given_last_is_undone_whatever_was_shown_last(people: People) -> None:
    """Two cards wait after two undos, and a second tab may answer the later one first."""
    ann = people.id_of("ann")
    shown = []
    for _ in range(2):
        card = next_card(people.review, ann)
        assert card is not None
        shown.append(card.showing)
        cast_vote(people.review, ann, card.showing, YES)
    undo_vote(people.review, ann)
    undo_vote(people.review, ann)
    for showing in reversed(shown):
        cast_vote(people.review, ann, showing, YES)
    undo_vote(people.review, ann)
    card = next_card(people.review, ann)
    assert card is not None
    assert (card.showing, card.done) == (shown[0], 1)


def test_tally_of_votes(people: People) -> None:
    """Maintained counts equal counts computed from the votes."""
    answer_all(people, "ann")
    answer_all(people, "bob", wrong=True, most=5)
    undo_vote(people.review, people.id_of("ann"))
    answer_all(people, "cem", most=4)
    for row in people.review.connection.execute("SELECT * FROM images WHERE role = ''").fetchall():
        votes = people.review.connection.execute(
            "SELECT approves FROM counted_votes WHERE image = ?", (row["id"],)
        ).fetchall()
        yes = sum(vote["approves"] for vote in votes)
        assert (row["yes"], row["no"]) == (yes, len(votes) - yes)
        assert row["decision"] == decide(yes, len(votes) - yes, 3)


def test_tokens_are_hashed(people: People, tmp_path: Path) -> None:
    people.review.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for file in tmp_path.glob("chairs.review*"):
        content = file.read_bytes()
        assert not [name for name, token in people.tokens.items() if token.encode() in content]


def test_changed_or_missing_images_are_reported(people: People, tmp_path: Path) -> None:
    ann = people.id_of("ann")
    card = next_card(people.review, ann)
    assert card is not None
    content, kind = card_image(people.review, ann, card.showing)
    assert kind == "image/png"
    assert content.startswith(b"\x89PNG")
    file = people.review.connection.execute(
        "SELECT file FROM images i JOIN showings s ON s.image = i.id WHERE s.id = ?", (card.showing,)
    ).fetchone()["file"]
    (tmp_path / "images" / file).write_bytes(b"another")
    with pytest.raises(ReviewError, match="changed after the review"):
        card_image(people.review, ann, card.showing)
    (tmp_path / "images" / file).unlink()
    with pytest.raises(ReviewError, match="cannot read the image"):
        card_image(people.review, ann, card.showing)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file\n000.png\n", "no column 'category'"),
        (
            "file,category\n../000.png,chair\n",
            "line 2: '../000.png' is not in the folder",
        ),
        ("file,category\n/etc/passwd,chair\n", "is not in the folder of the list"),
        ("file,category\n999.png,chair\n", "line 2: cannot read the image '999.png'"),
        ("file,category\nlist.csv,chair\n", "line 2: "),
        ("file,category\n000.png,\n", "line 2: category must not be empty"),
        ("file,category,role\n000.png,chair,control\n", "line 2: role must be empty or one of control-valid"),
        ("file,category\n000.png,chair\n000.png,chair\n", "line 3: duplicate file 000.png"),
        ("file,category\n0\0.png,chair\n", "line 2: '0\\x00.png' is not in the folder"),
        ('file,category\n"000.png,chair\n', "as a CSV file in UTF-8"),
        (f"file,category\n000.png,{'a' * 200_000}\n", "as a CSV file in UTF-8"),
        ("file,category,role\n000.png,chair,control-valid\n", "has no image to review"),
    ],
)
def test_a_bad_list_leaves_no_review(tmp_path: Path, text: str, message: str) -> None:
    images = make_images(tmp_path, 2, roles=[])
    images.write_text(text, encoding="utf-8")
    with pytest.raises(ReviewError) as error:
        create_review(tmp_path / "new.review", images)
    assert message in str(error.value)
    assert not (tmp_path / "new.review").exists()


def test_invalid_review(tmp_path: Path, people: People) -> None:
    with pytest.raises(ReviewError, match="already exists"):
        create_review(people.review.path, tmp_path / "images" / "list.csv")
    with pytest.raises(ReviewError, match="review not found"):
        open_review(tmp_path)
    (tmp_path / "other").write_bytes(b"no database" * 100)
    with pytest.raises(ReviewError, match="cannot open"):
        open_review(tmp_path / "other")
    (tmp_path / "empty").touch()
    with pytest.raises(ReviewError, match="cannot open"):
        open_review(tmp_path / "empty")


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM about WHERE name = 'folder'",
        "UPDATE about SET value = '{' WHERE name = 'rules'",
        "UPDATE about SET value = '3' WHERE name = 'rules'",
        """UPDATE about SET value = '{"votes": 0}' WHERE name = 'rules'""",
    ],
)
def test_review_with_invalid_settings(people: People, change: str) -> None:
    people.review.connection.execute(change)
    with pytest.raises(ReviewError, match="has invalid settings"):
        open_review(people.review.path)


def test_opening_a_damaged_review_raises(people: People) -> None:
    path = people.review.path
    people.review.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    people.review.close()
    content = path.read_bytes()
    for page in range(1, len(content) // 4096):
        path.write_bytes(content[: page * 4096] + b"\xff" * 4096 + content[(page + 1) * 4096 :])
        with pytest.raises(ReviewError, match="restore it from a copy"):
            open_review(path)
    path.write_bytes(content)
    open_review(path).close()


def test_a_review_cannot_be_made_where_nothing_can_be_written(tmp_path: Path) -> None:
    images = make_images(tmp_path, 2, roles=[])
    (tmp_path / "link").symlink_to(tmp_path / "absent" / "new.review")
    with pytest.raises(ReviewError, match="cannot create"):
        create_review(tmp_path / "link", images)


def test_a_name_is_invited_once_and_a_new_token_ends_the_old_one(people: People) -> None:
    from beaufort.mining.review.access import find_reviewer

    with pytest.raises(ReviewError, match="'ann' was invited before"):
        invite(people.review, "ann")
    new = invite(people.review, "ann", renew=True)
    assert find_reviewer(people.review, people.tokens["ann"]) is None
    found = find_reviewer(people.review, new)
    assert found is not None
    assert found.name == "ann"
    with pytest.raises(ReviewError, match="was not invited"):
        invite(people.review, "zoe", renew=True)
    with pytest.raises(ReviewError, match="renew and admin"):  # ann would stay what she is
        invite(people.review, "ann", renew=True, admin=True)


def test_names_that_are_no_unicode(tmp_path: Path) -> None:
    """So Python gives the words of a command that are in another encoding."""
    path = tmp_path / "new.review"
    create_review(path, make_images(tmp_path, 2, roles=[]), title="St\udcfchle")
    review = open_review(path)
    invite(review, "J\udcfcrgen")
    invite(review, "J\udcfcrgen", renew=True)
    assert review.title == r"St\xfchle"
    assert [one.name for one in review_status(review).reviewers] == [r"J\xfcrgen"]
    review.close()


def test_one_server(people: People) -> None:
    path = people.review.path
    with only_server(path), pytest.raises(ReviewError, match="already being served"), only_server(path):
        pass
    with only_server(people.review.path):
        pass


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"votes": 0}, r"votes .*positive integer.* 0"),
        ({"min_right": 2}, r"min_right .*number.* 0 to 1.* 2"),
    ],
)
def test_bad_rules(rules: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReviewRules(**rules)


def test_the_command(tmp_path: Path) -> None:
    images = make_images(tmp_path / "images", 4)
    file = str(tmp_path / "chairs.review")
    run = CliRunner().invoke
    made = run(app, ["review", "create", file, str(images), "--set", "votes=1"])
    assert made.exit_code == 0, made.output
    assert made.output.startswith("admin  http://127.0.0.1:8765/r/")
    token = run(app, ["review", "invite", file, "ann", "--address", "https://review.example/"]).output
    assert token.startswith("ann  https://review.example/r/")
    again = run(app, ["review", "invite", file, "bob", "ann"])
    assert (again.exit_code, again.stdout) == (2, "")  # nobody is let in if one cannot be
    assert "--renew" in " ".join(again.output.split())
    people = People(open_review(Path(file)), "")
    assert [row["name"] for row in people.review.connection.execute("SELECT name FROM reviewers")] == [
        "admin",
        "ann",
    ]
    answer_all(people, "ann")
    output = run(app, ["review", "status", file]).output
    assert output.startswith("4 accepted, 0 rejected, 0 tied, 0 open\n")
    data = json.loads(run(app, ["review", "status", file, "--json"]).output)
    assert data["reviewers"][0]["name"] == "ann"
    rows = list(csv.DictReader(io.StringIO(run(app, ["review", "status", file, "--output", "-"]).output)))
    assert [row["decision"] for row in rows] == ["accepted"] * 4
    assert {row["comments"] for row in rows} == {""}
    written = run(app, ["review", "status", file, "--output", str(tmp_path / "out.csv")])
    assert written.exit_code == 0
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 5
    shutil.rmtree(tmp_path / "images")  # decisions do not need the images
    assert run(app, ["review", "status", file, "--output", "-"]).exit_code == 0
    failed = run(app, ["review", "serve", str(tmp_path / "none.review")])
    assert failed.exit_code == 2


def test_comments_are_harmless_in_a_table(people: People) -> None:
    """They are what strangers wrote, for a terminal or a spreadsheet."""
    message = "=HYPERLINK(1)\r\ntwo lines\x1b[31m"
    for name in ("ann", "bob"):
        card = next_card(people.review, people.id_of(name))
        assert card is not None
        cast_vote(people.review, people.id_of(name), card.showing, YES, comment=message)
    text = invoke("review", "status", str(people.review.path), "--output", "-")
    assert "\x1b" not in text
    (found,) = {row["comments"] for row in csv.DictReader(io.StringIO(text)) if row["comments"]}
    assert found == "'=HYPERLINK(1) two lines\\x1b[31m | =HYPERLINK(1) two lines\\x1b[31m"


def test_categories_are_harmless_on_a_terminal(people: People, tmp_path: Path) -> None:
    people.review.connection.execute("UPDATE images SET category = 'chair\x1b[31m'")
    text = invoke("review", "status", str(people.review.path), "--output", "-")
    assert "chair\\x1b[31m" in text
    invoke("review", "status", str(people.review.path), "--output", str(tmp_path / "decisions.csv"))
    assert "chair\x1b[31m" in (tmp_path / "decisions.csv").read_text()  # a name stays as it is


def test_the_status_has_categories_pairs_and_comments(tmp_path: Path) -> None:
    images = make_images(tmp_path / "images", 12, roles=[])
    lines = images.read_text().splitlines()
    images.write_text("\n".join([lines[0], *(f"{line.split(',')[0]},t_shirt," for line in lines[1:])]) + "\n")
    path = tmp_path / "pairs.review"
    create_review(path, images)
    people = People(open_review(path), "")
    people.add("ann", "bob")
    for name in ("ann", "bob"):
        seen = 0
        while (card := next_card(people.review, people.id_of(name))) is not None:
            found = YES if seen % 3 else NO
            cast_vote(
                people.review, people.id_of(name), card.showing, found, comment="two of them" * (seen == 1)
            )
            seen += 1
    output = CliRunner().invoke(app, ["review", "status", str(path)]).output
    assert [line.split()[0] for line in output.splitlines() if "kappa" in line] == [
        "question", "category", "reviewers",
    ]  # fmt: skip
    assert "t_shirt" in output
    assert "ann, bob" in output
    rows = csv.DictReader(
        io.StringIO(CliRunner().invoke(app, ["review", "status", str(path), "--output", "-"]).output)
    )
    commented = {row["file"] for row in rows if "two of them" in row["comments"]}
    assert commented
    assert commented <= {one.file for one in review_status(people.review).discussed}
