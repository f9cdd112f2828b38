"""How long a recipe takes, beside its goal: Conv1 in 5 minutes and ResNet-20 on Icons-50 in 30, on two cores.

    python benchmarks/training.py --data mnist:FOLDER#train
    python benchmarks/training.py icons-resnet20 --data icons-50:FOLDER --seconds 60
    python benchmarks/training.py icons-resnext29 --data icons-50:FOLDER --device cuda --seconds 10

With `--seconds` it stops after so long and estimates the whole from the epochs after the first, or from all
steps if it does not get that far. Prints the seconds on the clock and of the processor: on a busy machine the
first says little.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time

import torch

from beaufort.studies.icons_50.icon_networks import IconSettings
from beaufort.studies.icons_50.icon_runs import split_icons
from beaufort.training import TrainingData, TrainingProgress, get_recipe, open_training_data, train

GOALS_S = {"conv1": 300, "icons-resnet20": 1800}
"""On two cores of a processor."""


def source_of(recipe: str, data: str) -> TrainingData:
    """What the recipe is for: all icons but Microsoft's, or the data as they are."""
    if recipe.startswith("icons-"):
        return split_icons(IconSettings(data=data), "style").train
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
    spent = f"{facts['seconds']:.0f} s, {facts['cpu_seconds']:.0f} s of the processor"
    if made.finished:
        return f"{name}, {steps} steps: {spent}, {about}"
    first, last = (marks[0], marks[-1]) if len(marks) > 1 else ((0.0, 0), (facts["seconds"], facts["steps"]))
    each = (last[0] - first[0]) / (last[1] - first[1])
    return (
        f"{name}, {facts['steps']} of {steps} steps: {spent}; {1000 * each:.1f} ms a step, so about "
        f"{each * steps:.0f} s, {about}"
    )


def _goal(name: str, device: str) -> str:
    return f"; goal {GOALS_S[name]} s" if device == "cpu" and name in GOALS_S else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("recipes", nargs="*", default=["conv1"], help="recipes; conv1 if none is named")
    parser.add_argument("--data", default="mnist-train", help="what to train on")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="for each recipe; the whole training if not given")
    parser.add_argument("--set", action="append", default=[], dest="settings", help="key=value of the recipe")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    load = os.getloadavg()[0]
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {load:.1f} before, {chosen.threads} threads, "
        f"torch {torch.__version__}"
    )
    for name in chosen.recipes:
        print(measure(name, chosen.data, chosen.device, chosen.seconds, chosen.settings), flush=True)


if __name__ == "__main__":
    main()
