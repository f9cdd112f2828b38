"""Time training recipes: Conv1 should take 5 minutes and ResNet-20 on Icons-50 30, on two cores.

    python -m benchmarks training --data mnist:FOLDER#train
    python -m benchmarks training icons-resnet20 --data icons-50:FOLDER --seconds 60
    python -m benchmarks training icons-resnext29 --data icons-50:FOLDER --device cuda --seconds 10

With `--seconds`, each recipe stops after that time, and the total is estimated from the time per step after
the first epoch. Wall time means little on a busy machine, so CPU time is printed as well.
"""

from __future__ import annotations

import argparse
import tempfile
import time

import torch

from beaufort.studies import StudySettings
from beaufort.studies.trained_arms import training_images
from beaufort.training import TrainingData, TrainingProgress, get_recipe, open_training_data, train
from benchmarks.recording import record

GOALS_S = {"conv1": 300, "icons-resnet20": 1800}
"""Seconds on two cores."""


def source_of(recipe: str, data: str) -> TrainingData:
    """Return the training data; icon recipes leave out the icons of Microsoft."""
    if recipe.startswith("icons-"):
        place = data.removeprefix("icons-50:")
        return training_images(StudySettings(study="icons-50", data=(("icons-50", place),)), "style")
    return open_training_data(data)


def measure(name: str, data: str, device: str, seconds: float | None, settings: list[str]) -> str:
    recipe = get_recipe(name).changed(settings)
    source = source_of(name, data)
    steps = recipe.epochs * max(1, len(source) // recipe.batch)
    marks: list[tuple[float, int]] = []

    def mark(at: TrainingProgress) -> None:
        marks.append((time.monotonic(), at.step))

    deadline = None if seconds is None else time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        made = train(recipe, source, output=folder, device=device, progress=mark, deadline=deadline)
    facts = made.facts
    about = f"on {facts['device']}{', replayed' if facts['replayed'] else ''}{_goal(name, device)}"
    spent = f"{facts['seconds']:.0f} s, {facts['cpu_seconds']:.0f} s CPU"
    record(f"{name}, run", facts["seconds"], "s")
    record(f"{name}, run, CPU", facts["cpu_seconds"], "s")
    if made.finished:
        return f"{name}, {steps} steps: {spent}, {about}"
    first, last = (marks[0], marks[-1]) if len(marks) > 1 else ((0.0, 0), (facts["seconds"], facts["steps"]))
    each = (last[0] - first[0]) / (last[1] - first[1])
    record(f"{name}, step", 1000 * each, "ms")
    return (
        f"{name}, {facts['steps']} of {steps} steps: {spent}; {1000 * each:.1f} ms per step, estimated total "
        f"{each * steps:.0f} s, {about}"
    )


def _goal(name: str, device: str) -> str:
    return f"; goal {GOALS_S[name]} s" if device == "cpu" and name in GOALS_S else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recipes", nargs="*", default=["conv1"], help="names of recipes (default: conv1)")
    parser.add_argument("--data", default="mnist-train", help="training dataset")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--seconds", type=float, help="stop each recipe after this many seconds (default: train to the end)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        help="field of the recipe as KEY=VALUE (repeatable)",
    )
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    for name in chosen.recipes:
        print(measure(name, chosen.data, chosen.device, chosen.seconds, chosen.settings), flush=True)
