"""Pipelines of diffusers: loaded from safetensors, told apart by all that changes an image."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from beaufort._core.optional import installed, require
from beaufort.mining.plan import MiningError, PlanItem

_DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class PipelineOptions:
    """How a pipeline is loaded and asked."""

    model: str
    """A folder, or a name on the hub."""
    steps: int
    batch: int
    dtype: str
    device: str
    scheduler: str | None
    guidance: float | None

    def __post_init__(self) -> None:
        if self.dtype not in _DTYPES:
            raise MiningError(f"dtype must be float32, float16 or bfloat16, got {self.dtype!r}")
        if self.steps < 1 or self.batch < 1:
            raise MiningError(f"steps and batch must be at least 1, got {self.steps} and {self.batch}")

    @property
    def call(self) -> dict[str, Any]:
        """What every call of the pipeline is given."""
        guided = {} if self.guidance is None else {"guidance_scale": self.guidance}
        return {"num_inference_steps": self.steps, "output_type": "pil", **guided}


def load_pipeline(options: PipelineOptions, task: str = "") -> Any:
    """A pipeline of diffusers, on its device.

    Args:
        options: which, and how.
        task: what its class is called for another task than its own: `Img2Img` for
            `StableDiffusionImg2ImgPipeline`, from the weights of a `StableDiffusionPipeline`.
    """
    kinds = require("diffusers", "mining", what="diffusion models")
    require("transformers", "mining", what="text encoders of diffusion models")
    import torch

    try:
        pipeline = kinds.DiffusionPipeline.from_pretrained(
            options.model,
            use_safetensors=True,
            dtype=getattr(torch, options.dtype),
            low_cpu_mem_usage=installed("accelerate"),
        )
    except (OSError, ValueError, KeyError) as error:
        raise MiningError(
            f"model must be a pipeline of diffusers with safetensors, got {options.model!r}: {error}"
        ) from None
    if options.scheduler is not None:
        found = getattr(kinds, options.scheduler, None)
        if found is None or not hasattr(found, "from_config"):
            raise MiningError(f"scheduler must be one of diffusers, got {options.scheduler!r}")
        pipeline.scheduler = found.from_config(pipeline.scheduler.config)
    if task and task not in type(pipeline).__name__:
        name = type(pipeline).__name__.removesuffix("Pipeline") + f"{task}Pipeline"
        if not hasattr(kinds, name):
            raise MiningError(
                f"model must be a pipeline that diffusers has a {task} form of, got {options.model!r}, a "
                f"{type(pipeline).__name__}"
            )
        pipeline = getattr(kinds, name).from_pipe(pipeline)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline.to(options.device)


def pipeline_facts(options: PipelineOptions, pipeline: Any) -> Mapping[str, Any]:
    """The pipeline, its scheduler with all settings, and how it is asked."""
    settings = {
        key: value for key, value in sorted(dict(pipeline.scheduler.config).items()) if key[:1] != "_"
    }
    return {
        "model": options.model,
        "pipeline": type(pipeline).__name__,
        "scheduler": {"name": type(pipeline.scheduler).__name__, **settings},
        "steps": options.steps,
        "dtype": options.dtype,
        "guidance": options.guidance,
    }


def check_prompts(items: Sequence[PlanItem]) -> None:
    """Every item needs a prompt."""
    if empty := next((item for item in items if not item.prompt.strip()), None):
        raise MiningError(
            f"every row must have a prompt, got none for {empty.category} with {empty.nuisance}"
        )


def cpu_generators(items: Sequence[PlanItem]) -> list[Any]:
    """A source of noise for each item; on the CPU, so that it is the same wherever the network runs."""
    import torch

    return [torch.Generator("cpu").manual_seed(item.seed) for item in items]
