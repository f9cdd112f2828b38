"""Hard test images: planned, generated, chosen by models' failures, exported, and evaluated.

`make_plan` crosses categories with nuisances into a list that can be read before it costs anything;
`generate` carries it out with any `Generator`. `CompositeGenerator` puts cut-outs on backgrounds and surfaces
and needs neither a GPU nor weights. `ask_models` and `select` keep what surrogate models get wrong.
"""

from __future__ import annotations

from beaufort.mining._surfaces import SURFACES
from beaufort.mining.answer_scoring import SCORINGS, ChoiceOutcome, score_answer
from beaufort.mining.asking import ChoiceAnswer, ChoiceScores, ask_questions, read_choices, score_choices
from beaufort.mining.chat import ChatModel, HttpChatModel, TransformersChatModel, load_chat_model
from beaufort.mining.composite import CompositeGenerator
from beaufort.mining.conditional import ConditionalGenerator, ConditionPair
from beaufort.mining.curve import hardness_curve
from beaufort.mining.diffusion import DiffusionGenerator
from beaufort.mining.evaluation_report import SetScore, confusions, score_set, write_evaluation_report
from beaufort.mining.export import LAYOUTS, export_set
from beaufort.mining.folder import FolderGenerator
from beaufort.mining.generation import GeneratedImage, generate, read_generated
from beaufort.mining.generators import Generator
from beaufort.mining.learning import UNetRecipe, train_conditional
from beaufort.mining.nuisances import BUILT_IN, KINDS, read_names
from beaufort.mining.plan import TEMPLATES, MiningError, PlanItem, make_plan, read_plan, write_plan
from beaufort.mining.questions import TwoWayQuestion, make_questions
from beaufort.mining.retouch import RETOUCHES, RetouchGenerator
from beaufort.mining.selection import (
    MinedSelection,
    SelectedImage,
    open_generated,
    read_selection,
    select,
    write_review_list,
)
from beaufort.mining.selection_report import write_selection_report
from beaufort.mining.sets import MinedSet, SetImage, open_set
from beaufort.mining.transfer import hardness, nuisance_failures, transfer_matrix
from beaufort.mining.verdicts import Verdicts, ask_models, mined_suite

__all__ = [
    "BUILT_IN",
    "KINDS",
    "LAYOUTS",
    "RETOUCHES",
    "SCORINGS",
    "SURFACES",
    "TEMPLATES",
    "ChatModel",
    "ChoiceAnswer",
    "ChoiceOutcome",
    "ChoiceScores",
    "CompositeGenerator",
    "ConditionPair",
    "ConditionalGenerator",
    "DiffusionGenerator",
    "FolderGenerator",
    "GeneratedImage",
    "Generator",
    "HttpChatModel",
    "MinedSelection",
    "MinedSet",
    "MiningError",
    "PlanItem",
    "RetouchGenerator",
    "SelectedImage",
    "SetImage",
    "SetScore",
    "TransformersChatModel",
    "TwoWayQuestion",
    "UNetRecipe",
    "Verdicts",
    "ask_models",
    "ask_questions",
    "confusions",
    "export_set",
    "generate",
    "hardness",
    "hardness_curve",
    "load_chat_model",
    "make_plan",
    "make_questions",
    "mined_suite",
    "nuisance_failures",
    "open_generated",
    "open_set",
    "read_choices",
    "read_generated",
    "read_names",
    "read_plan",
    "read_selection",
    "score_answer",
    "score_choices",
    "score_set",
    "select",
    "train_conditional",
    "transfer_matrix",
    "write_evaluation_report",
    "write_plan",
    "write_review_list",
    "write_selection_report",
]
