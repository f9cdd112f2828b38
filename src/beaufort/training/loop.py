"""The training loop, on the CPU or a GPU; it can be killed at any moment and resumed.

Each step draws its random numbers from the seed and the step number alone, so a resumed run gives the same
result as an uninterrupted one, on the CPU bit for bit.
"""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from beaufort._core.errors import BeaufortError, OptionError
from beaufort._core.optional import require
from beaufort.corruptions.rng import validate_seed
from beaufort.models.torch import choose_device
from beaufort.training.checkpoint import (
    TrainingFileError,
    read_state,
    read_weights,
    write_facts,
    write_state,
    write_weights,
)
from beaufort.training.data import TrainingData, TrainingTensors, check_block, open_training_data
from beaufort.training.optimize import make_optimizer, rate_at, set_rate
from beaufort.training.recipe import Recipe, get_recipe
from beaufort.training.replay import ReplayedStep
from beaufort.training.trained import FACTS, NETWORK, STATE, WEIGHTS, find_trained, read_facts

if TYPE_CHECKING:
    from torch import Tensor, nn

    from beaufort.training.interventions import Intervention


class TrainingProgress(NamedTuple):
    """Progress of a training run."""

    step: int
    steps: int
    epoch: int
    loss: float | None
    """Mean of the last complete epoch; None during the first."""


@dataclass(frozen=True, eq=False)
class Training:
    """A training run."""

    model: nn.Module
    folder: Path
    facts: dict[str, Any]
    finished: bool
    """False if it was stopped at its deadline; the same call resumes it."""


def train(
    recipe: Recipe | str,
    data: TrainingData | str | None = None,
    *,
    output: Path | str,
    seed: int = 0,
    device: str = "auto",
    limit: int | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
    save_every_s: float = 60.0,
    deadline: float | None = None,
) -> Training:
    """Train a network and write it to a folder; if the folder contains the same training run, load it.

    Args:
        recipe: a recipe, or its name or YAML file.
        data: training data; those of the recipe by default.
        output: directory for the weights (safetensors), the facts (JSON) and an ONNX file.
        seed: random seed.
        device: `cpu`, `cuda`, `cuda:1`; `auto` uses a GPU if there is one.
        limit: use only the first images, if `data` is a name.
        progress: called at least once per epoch.
        save_every_s: seconds between checkpoints.
        deadline: time of `time.monotonic()` at which to save and stop.
    """
    recipe, seed = get_recipe(recipe) if isinstance(recipe, str) else recipe, validate_seed(seed)
    recipe.check_start()
    named = recipe.data if data is None else data
    source = open_training_data(named, limit=limit) if isinstance(named, str) else named
    if len(source) == 0:
        raise OptionError(f"{source.name} has no images to train on")
    torch = require("torch", "training", what="training runs")
    where = str(torch.empty(0, device=choose_device(device)).device)
    folder = Path(output)
    devices = [where] if where.startswith("cuda") else []
    with torch.random.fork_rng(devices=devices):  # do not change the caller's generator
        return _Run(recipe, source, folder, seed, where, progress, save_every_s, deadline).run()


@contextmanager
def _safe_convolutions(model: nn.Module, device: str) -> Iterator[None]:
    """On the CPU, turn oneDNN off for networks that make it write outside its memory.

    With fewer channels than fit into a register and channels-last memory, as after `augment`, the gradient of
    a strided 1×1 convolution is wrong or crashes the process.
    """
    from torch import backends, nn

    known: Any = backends.mkldnn
    before = known.enabled
    unsafe = device == "cpu" and any(
        max(one.kernel_size) == 1 < max(one.stride) and one.in_channels < 16
        for one in model.modules()
        if isinstance(one, nn.Conv2d)
    )
    known.enabled = before and not unsafe
    try:
        yield
    finally:
        known.enabled = before


class _Run:
    """The state of a training run: network, optimizer and progress."""

    def __init__(
        self,
        recipe: Recipe,
        source: TrainingData,
        folder: Path,
        seed: int,
        device: str,
        progress: Callable[[TrainingProgress], None] | None,
        save_every_s: float,
        deadline: float | None,
    ) -> None:
        from beaufort.training.architectures import build
        from beaufort.training.interventions import make_intervention

        self.torch = require("torch", "training", what="training runs")
        self.recipe, self.source, self.folder, self.seed, self.device = recipe, source, folder, seed, device
        self.progress, self.save_every_s, self.deadline = progress, save_every_s, deadline
        self.torch.manual_seed(_mixed(seed, "weights"))
        classes = len(source.classes)
        self.model: nn.Module = build(recipe.architecture, recipe.architecture_options, classes=classes)
        self.model.to(device)
        self.replay = recipe.replay and device.startswith("cuda")
        if self.replay:
            self.model.to(memory_format=self.torch.channels_last)  # type: ignore[call-overload]
        if recipe.start:
            read_weights(find_trained(recipe.start) / WEIGHTS, self.model)
        self.intervention: Intervention = make_intervention(
            recipe.intervention, recipe.intervention_options, seed=seed, device=device
        )
        self.optimizer = make_optimizer(recipe, self.model)
        self.advance = ReplayedStep(self._advance) if self.replay else self._advance
        self.per_epoch = max(1, len(source) // recipe.batch)
        self.steps = recipe.epochs * self.per_epoch
        self.step = 0
        self.total: Tensor = self.torch.zeros((), device=device)
        self.labels: Tensor = self.torch.zeros(classes, device=device)
        """Number of images of each class in the epoch so far."""
        self.losses: list[float] = []
        self.seconds = 0.0
        self.cpu_seconds = 0.0

    @property
    def identity(self) -> dict[str, Any]:
        """What distinguishes this training run from others."""
        data = {"name": self.source.name, "digest": self.source.digest, "images": len(self.source)}
        return {"recipe": self.recipe.as_dict(), "seed": self.seed, "data": data}

    def run(self) -> Training:
        if (self.folder / FACTS).is_file():
            facts = read_facts(self.folder)
            self._check_identity(facts, FACTS)
            read_weights(self.folder / WEIGHTS, self.model)
            return Training(self.model.eval(), self.folder, facts, True)
        _check_folder(self.folder)
        self._resume()
        flags = self.torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True)
        with flags, _safe_convolutions(self.model, self.device):
            finished = self._learn()
        if not finished:
            self._save()
            return Training(self.model, self.folder, self._facts(), False)
        return Training(self.model.eval(), self.folder, self._finish(), True)

    def _learn(self) -> bool:
        start, cpu = time.monotonic(), time.process_time()
        before, cpu_before = self.seconds, self.cpu_seconds
        saved, begun = start, self.step
        self.model.train()
        for images, labels in self._batches():
            self._one_step(images, labels) if self.step != begun else self._first_step(images, labels)
            now = time.monotonic()
            self.seconds = before + now - start
            self.cpu_seconds = cpu_before + time.process_time() - cpu
            if self.deadline is not None and now >= self.deadline and self.step < self.steps:
                return False
            if now - saved >= self.save_every_s:
                self._save()
                saved = now
        return True

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield the remaining batches; blocks are read and prepared when they are reached."""
        batch = self.recipe.batch
        blocks = max(batch, self.recipe.block // batch * batch)
        while self.step < self.steps and self._is_sound():
            epoch, done = divmod(self.step, self.per_epoch)
            self._on_progress(epoch / self.recipe.epochs)
            order = _order(self.seed, epoch, len(self.source))[: self.per_epoch * batch]
            if done == 0:
                self.total, self.labels = self.total.new_zeros(()), self.torch.zeros_like(self.labels)
            for start in range(done * batch // blocks * blocks, len(order), blocks):
                block = self.source.read(order[start : start + blocks], self.device)
                if type(self.source) is not TrainingTensors:  # those are checked when they are created
                    check_block(self.source.name, block.images, block.labels, len(self.source.classes))
                images = self.intervention.prepare(block, epoch)
                for at in range(max(0, done * batch - start), len(block.places), batch):
                    yield images[at : at + batch], block.labels[at : at + batch]
                self._report(epoch)

    def _is_sound(self) -> bool:
        """Whether all losses are finite; training stops if the weights become NaN."""
        return all(map(math.isfinite, self.losses))

    def _on_progress(self, fraction: float) -> None:
        """Report progress to a network that changes during training, such as one that is pruned."""
        if on_progress := getattr(self.model, "on_progress", None):
            on_progress(fraction)
            if isinstance(self.advance, ReplayedStep):
                self.advance.forget()

    def _one_step(self, images: Tensor, labels: Tensor) -> None:
        self.torch.manual_seed(_mixed(self.seed, f"step {self.step}"))
        set_rate(self.optimizer, rate_at(self.recipe, self.step, self.steps))
        self.total += self.advance(images, labels)
        self.labels.index_add_(0, labels, self.labels.new_ones(len(labels)))
        self.step += 1
        if self.step % self.per_epoch == 0:  # before a possible checkpoint
            self.losses.append(float(self.total) / self.per_epoch)

    def _first_step(self, images: Tensor, labels: Tensor) -> None:
        """Make a step; add the network and the data to errors of torch."""
        try:
            self._one_step(images, labels)
        except BeaufortError:
            raise
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError) as error:
            shape = " × ".join(map(str, self.source.shape))
            raise OptionError(
                f"cannot train the network {self.recipe.architecture!r} on {self.source.name} with images "
                f"{shape} (channels, height, width) of {len(self.source.classes)} classes: "
                f"{' '.join(str(error).split()):.300}"
            ) from error

    def _advance(self, images: Tensor, labels: Tensor) -> Tensor:
        """Make a training step; return the loss."""
        torch = self.torch
        values = images.float() / 255
        if self.replay:
            values = values.contiguous(memory_format=torch.channels_last)
        short = self.recipe.precision == "bfloat16" and self.device.startswith("cuda")
        with torch.autocast("cuda", torch.bfloat16, enabled=short):
            loss = self.intervention.loss(self.model, values, labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        found: Tensor = loss.detach()
        return found

    def _report(self, epoch: int) -> None:
        if self.progress:
            last = self.losses[-1] if self.losses else None
            self.progress(TrainingProgress(self.step, self.steps, epoch, last))

    def _save(self) -> None:
        facts = {
            **self.identity,
            "step": self.step,
            "losses": self.losses,
            "total": float(self.total),
            "labels": self.labels.tolist(),
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
        }
        write_state(self.folder / STATE, self.model, self.optimizer, self.intervention.state(), facts)

    def _resume(self) -> None:
        if not (self.folder / STATE).is_file():
            return
        facts, extra = read_state(self.folder / STATE, self.model, self.optimizer)
        self._check_identity(facts, STATE)
        self.intervention.restore(extra)
        if self.replay:
            self._lay_out_buffers()
        self.step, self.losses = facts["step"], facts["losses"]
        self.total += facts["total"]
        self.labels += self.labels.new_tensor(facts.get("labels", 0))  # missing in old checkpoints
        self.seconds, self.cpu_seconds = facts["seconds"], facts["cpu_seconds"]

    def _lay_out_buffers(self) -> None:
        """Give the optimizer's tensors the memory layout of the parameters, as fused steps require."""
        for parameter, state in self.optimizer.state.items():
            for key, value in state.items():
                if getattr(value, "shape", None) == parameter.shape:
                    state[key] = self.torch.empty_like(parameter).copy_(value)

    def _check_identity(self, facts: dict[str, Any], file: str) -> None:
        # fill in settings that the file is too old to contain
        recipe = Recipe.from_dict(facts.get("recipe", {})).as_dict()
        found = {**facts, "recipe": {**recipe, "about": self.recipe.about}}  # the description does not matter
        if isinstance(data := facts.get("data"), dict) and not data.get("digest"):
            found["data"] = {**data, "digest": self.source.digest}  # unknown in old files
        for key, value in self.identity.items():
            if found.get(key) != value:
                what = "other data" if key == "data" else f"another {key}"
                raise TrainingFileError(
                    f"{self.folder / file} belongs to a training run with {what} "
                    f"({_difference(found.get(key), value)}); choose another output or delete the directory"
                )

    def _finish(self) -> dict[str, Any]:
        from beaufort.training.export import export_onnx

        facts = self._facts()
        write_weights(self.folder / WEIGHTS, self.model)
        classes = self.source.classes
        facts["onnx"] = export_onnx(self.model, self.folder / NETWORK, self.source.shape, classes)
        write_facts(self.folder / FACTS, facts)
        (self.folder / STATE).unlink(missing_ok=True)
        return facts

    def _facts(self) -> dict[str, Any]:
        from beaufort.training.interventions import least_constant_loss

        name = self.torch.cuda.get_device_name(self.device) if self.device.startswith("cuda") else "cpu"
        counts = [int(count) for count in self.labels.tolist()]
        return {
            **self.identity,
            "classes": list(self.source.classes),
            "shape": list(self.source.shape),
            "parameters": sum(one.numel() for one in self.model.parameters()),
            "steps": self.step,
            "losses": [round(loss, 6) if math.isfinite(loss) else None for loss in self.losses],
            "constant_loss": least_constant_loss(self.intervention, self.model, counts),
            "seconds": round(self.seconds, 1),
            "cpu_seconds": round(self.cpu_seconds, 1),
            "device": name,
            "replayed": isinstance(self.advance, ReplayedStep) and self.advance.graph is not None,
            "torch": self.torch.__version__,
        }


def _difference(there: Any, here: Any) -> str:
    """Return the first difference between two values or dicts."""
    if not isinstance(there, dict) or not isinstance(here, dict):
        return f"{there!r:.40} there, {here!r:.40} here"
    key = next(key for key, value in here.items() if there.get(key) != value)
    return f"{key}: {_difference(there.get(key), here[key])}"


def _check_folder(folder: Path) -> None:
    """Check before training, which may take days, that the output can be written."""
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "is not a directory" if not there.is_dir() else "is not writable"
        raise OptionError(f"cannot write output to {folder}: {there} {why}")


def _order(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    """Return the order of the images in an epoch."""
    return np.random.default_rng([_mixed(seed, "order"), epoch]).permutation(count)


def _mixed(seed: int, what: str) -> int:
    """Return a seed for one purpose, independent of those for others."""
    digest = hashlib.blake2b(f"beaufort|training|{seed}|{what}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1
