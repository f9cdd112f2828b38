"""Review by people: images with their intended category, judged by keyboard in a browser.

A review is one SQLite file. `create_review` creates it from a list of images, `invite` lets people in, and
`serve` serves it; `decisions` returns the decision about each image, and `review_status` how far people
agree. FastAPI and uvicorn, which only `serve` needs, come with the extra `review`.
"""

from __future__ import annotations

from beaufort.mining.review.access import invite, invite_all
from beaufort.mining.review.cards import card_image, next_card, review_image
from beaufort.mining.review.creation import create_review
from beaufort.mining.review.database import Review, ReviewError, open_review
from beaufort.mining.review.rules import QUESTIONS, Checks, Question, ReviewRules, parse_rules
from beaufort.mining.review.server import serve
from beaufort.mining.review.status import ImageDecision, ReviewStatus, decisions, decisions_csv, review_status
from beaufort.mining.review.votes import cast_vote, reinstate, settle_tie, undo_vote

__all__ = [
    "QUESTIONS",
    "Checks",
    "ImageDecision",
    "Question",
    "Review",
    "ReviewError",
    "ReviewRules",
    "ReviewStatus",
    "card_image",
    "cast_vote",
    "create_review",
    "decisions",
    "decisions_csv",
    "invite",
    "invite_all",
    "next_card",
    "open_review",
    "parse_rules",
    "reinstate",
    "review_image",
    "review_status",
    "serve",
    "settle_tie",
    "undo_vote",
]
