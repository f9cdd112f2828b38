"""Hard test images: planned, generated, selected by model failures, reviewed by people, exported.

`make_plan` crosses categories with nuisances into a list that can be read before it costs anything;
`generate` carries it out with any `Generator`. `CompositeGenerator` puts cut-outs on backgrounds and surfaces
and needs neither a GPU nor weights. `select_images` keeps what surrogate models get wrong.
"""

from __future__ import annotations

from beaufort.mining.composite import SURFACES, CompositeGenerator
from beaufort.mining.conditional import ConditionalGenerator, ConditionPair, UNetRecipe, train_conditional
from beaufort.mining.diffusion import RETOUCHES, DiffusionGenerator, RetouchGenerator
from beaufort.mining.evaluation_report import (
    SetScore,
    confusions,
    evaluate_set,
    score_set,
    write_evaluation_report,
)
from beaufort.mining.export import LAYOUTS, MinedSet, SetImage, export_set, open_set
from beaufort.mining.generation import (
    FolderGenerator,
    GeneratedImage,
    Generator,
    generate,
    load_generator,
    read_generated,
    read_omitted,
)
from beaufort.mining.names import BUILT_IN, KINDS, read_names
from beaufort.mining.plan import (
    TEMPLATES,
    MiningError,
    OmittedImage,
    PlanItem,
    make_plan,
    read_plan,
    write_plan,
)
from beaufort.mining.predictions import SetPredictions, mined_suite, predict_set
from beaufort.mining.screening import (
    ReviewedPart,
    ScreenedImage,
    Screening,
    ScreeningErrors,
    read_screening,
    screen_images,
    screening_errors,
)
from beaufort.mining.selection import (
    MinedSelection,
    SelectedImage,
    hardness,
    nuisance_failures,
    open_generated,
    read_selection,
    select,
    transfer_matrix,
    write_review_list,
)
from beaufort.mining.selection_report import select_images, write_selection_report
from beaufort.mining.surrogate_curve import hardness_curve
from beaufort.mining.two_way_choice import (
    SCORINGS,
    ChoiceOutcome,
    ChoiceReply,
    ChoiceScores,
    TwoWayQuestion,
    ask_about_set,
    ask_questions,
    make_questions,
    read_choices,
    score_choices,
    score_reply,
)

__all__ = [
    "BUILT_IN",
    "KINDS",
    "LAYOUTS",
    "RETOUCHES",
    "SCORINGS",
    "SURFACES",
    "TEMPLATES",
    "ChoiceOutcome",
    "ChoiceReply",
    "ChoiceScores",
    "CompositeGenerator",
    "ConditionPair",
    "ConditionalGenerator",
    "DiffusionGenerator",
    "FolderGenerator",
    "GeneratedImage",
    "Generator",
    "MinedSelection",
    "MinedSet",
    "MiningError",
    "OmittedImage",
    "PlanItem",
    "RetouchGenerator",
    "ReviewedPart",
    "ScreenedImage",
    "Screening",
    "ScreeningErrors",
    "SelectedImage",
    "SetImage",
    "SetPredictions",
    "SetScore",
    "TwoWayQuestion",
    "UNetRecipe",
    "ask_about_set",
    "ask_questions",
    "confusions",
    "evaluate_set",
    "export_set",
    "generate",
    "hardness",
    "hardness_curve",
    "load_generator",
    "make_plan",
    "make_questions",
    "mined_suite",
    "nuisance_failures",
    "open_generated",
    "open_set",
    "predict_set",
    "read_choices",
    "read_generated",
    "read_names",
    "read_omitted",
    "read_plan",
    "read_screening",
    "read_selection",
    "score_choices",
    "score_reply",
    "score_set",
    "screen_images",
    "screening_errors",
    "select",
    "select_images",
    "train_conditional",
    "transfer_matrix",
    "write_evaluation_report",
    "write_plan",
    "write_review_list",
    "write_selection_report",
]
