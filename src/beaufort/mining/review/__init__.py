"""Review by people: images with their intended category, answered by keyboard in a browser.

A review is one SQLite file. `create_review` makes it from a list of images, `invite` lets people in, and
`serve` shows it on this machine; `decisions` says what became of each image, and `standing` how far people
agree. FastAPI and uvicorn, which only `serve` needs, come with the extra `review`.
"""

from __future__ import annotations

from beaufort.mining.review.access import invite, invite_all
from beaufort.mining.review.creation import create_review
from beaufort.mining.review.database import Review, ReviewError, open_review
from beaufort.mining.review.progress import ImageDecision, ReviewStanding, decisions, standing
from beaufort.mining.review.rules import QUESTIONS, Question, ReviewRules
from beaufort.mining.review.server import serve

__all__ = [
    "QUESTIONS",
    "ImageDecision",
    "Question",
    "Review",
    "ReviewError",
    "ReviewRules",
    "ReviewStanding",
    "create_review",
    "decisions",
    "invite",
    "invite_all",
    "open_review",
    "serve",
    "standing",
]
