"""Text to image, image to image and inpainting with pipelines of diffusers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from beaufort._core.optional import installed, require
from beaufort._core.validation import validate_choice, validate_count, validate_directory
from beaufort.data.images import read_image
from beaufort.mining.composite import ON_OBJECT, category_images, images_digest, read_cutout
from beaufort.mining.plan import MiningError, OmittedImage, PlanItem
from beaufort.models.chat_client import DTYPES

RETOUCHES = {"image-to-image": "Img2Img", "inpainting": "Inpaint"}
"""Tasks that change photos, and the part of the names of diffusers' classes for them."""


class DiffusionGenerator:
    """Text to image with a pipeline from a folder or the hub; weights are safetensors, never pickles.

    Images that the pipeline's safety checker blocks, and images of a single color, are omitted.

    Args:
        model: folder or hub name of the pipeline, or a checkpoint in a single safetensors file.
        steps: steps of the sampler.
        size: height and width in pixels; the pipeline's own by default.
        batch: images at a time; each has its own random generator, seeded by its item.
        dtype: float32, float16 or bfloat16.
        device: cpu, cuda or cuda:1.
        scheduler: name of a scheduler of diffusers; the pipeline's own by default.
        guidance: scale of classifier-free guidance; the pipeline's own by default.
        variant: variant of the weights, such as fp16; by default the only one, if there are no others.
        revision: branch, tag or commit of a model on the hub.
        config: folder or hub name of a pipeline with the configuration of a single file; by default, that is
            detected and downloaded.
    """

    def __init__(
        self,
        model: str,
        *,
        steps: int = 30,
        size: int | None = None,
        batch: int = 4,
        dtype: str = "float32",
        device: str = "cpu",
        scheduler: str | None = None,
        guidance: float | None = None,
        variant: str | None = None,
        revision: str | None = None,
        config: str | None = None,
    ) -> None:
        self._variant, self._revision, self._config = variant, revision, config
        self._model, self._size, self._device, self._scheduler = model, size, device, scheduler
        self._steps, self.batch = validate_count("steps", steps), validate_count("batch", batch)
        self._dtype, self._guidance = validate_choice("dtype", dtype, DTYPES), guidance

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Pipeline, digest of its files, scheduler with all settings, and options."""
        scheduler = self._pipeline.scheduler
        settings = {key: value for key, value in sorted(dict(scheduler.config).items()) if key[:1] != "_"}
        return {
            "name": "diffusers",
            "model": self._model if self._downloaded else self._files.name,
            **({"revision": self._files.name} if self._downloaded else {}),
            "weights": _digest(self._files, self._chosen_variant),
            "pipeline": type(self._pipeline).__name__,
            "scheduler": {"name": type(scheduler).__name__, **settings},
            "steps": self._steps,
            "dtype": self._dtype,
            "guidance": self._guidance,
            "size": self._size,
        }

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error if an item has no prompt, or the pipeline cannot be loaded."""
        if empty := next((item for item in items if not item.prompt.strip()), None):
            raise MiningError(f"the row for {empty.category} with {empty.nuisance} has no prompt")
        _ = self._pipeline

    def make(self, items: Sequence[PlanItem]) -> Sequence[Image.Image | OmittedImage]:
        """Return the images of items, each from noise with its seed; some are omitted."""
        import torch

        options = self._inputs(items)
        if self._guidance is not None:
            options["guidance_scale"] = self._guidance
        result = self._pipeline(
            prompt=[item.prompt for item in items],
            # on the CPU, so that the noise does not depend on the device
            generator=[torch.Generator("cpu").manual_seed(item.seed) for item in items],
            num_inference_steps=self._steps,
            output_type="pil",
            **options,
        )
        blocked = getattr(result, "nsfw_content_detected", None) or [False] * len(items)
        return [_usable(image, bool(flag)) for image, flag in zip(result.images, blocked, strict=True)]

    def _inputs(self, items: Sequence[PlanItem]) -> dict[str, Any]:  # noqa: ARG002
        return {} if self._size is None else {"height": self._size, "width": self._size}

    @property
    def _downloaded(self) -> bool:
        return not Path(self._model).exists()

    @cached_property
    def _files(self) -> Path:
        """Folder of the pipeline, which is that of a commit if it was downloaded, or the single file."""
        if not self._downloaded:
            return Path(self._model).resolve()
        kinds = require("diffusers", "mining", what="diffusion models")
        options = {"variant": self._variant, "revision": self._revision, "use_safetensors": True}
        return Path(kinds.DiffusionPipeline.download(self._model, **options))

    @cached_property
    def _chosen_variant(self) -> str | None:
        return self._variant or _only_variant(self._files)

    @cached_property
    def _pipeline(self) -> Any:
        return self._load()

    def _load(self, task: str = "") -> Any:
        """Load the pipeline onto its device.

        Args:
            task: part of the class name of a different task, as `Img2Img` for
                `StableDiffusionImg2ImgPipeline`, with the weights of a `StableDiffusionPipeline`.
        """
        kinds = require("diffusers", "mining", what="diffusion models")
        require("transformers", "mining", what="text encoders of diffusion models")
        import torch

        options: dict[str, Any] = {"dtype": getattr(torch, self._dtype)}
        try:
            if self._files.is_file():
                kind, options["config"] = self._kind_of_file(kinds)
                pipeline = kind.from_single_file(str(self._files), **options)
            else:
                pipeline = kinds.DiffusionPipeline.from_pretrained(
                    str(self._files),
                    use_safetensors=True,
                    variant=self._chosen_variant,
                    low_cpu_mem_usage=installed("accelerate"),
                    **options,
                )
        except (OSError, ValueError, KeyError) as error:
            raise MiningError(
                f"cannot load {self._model!r} as a pipeline of diffusers with safetensors: {error}"
            ) from None
        if self._scheduler is not None:
            found = getattr(kinds, self._scheduler, None)
            if found is None or not hasattr(found, "from_config"):
                raise MiningError(f"unknown scheduler of diffusers {self._scheduler!r}")
            pipeline.scheduler = found.from_config(pipeline.scheduler.config)
        own = type(pipeline).__name__
        if task and task not in own:
            name = f"{own.removesuffix('Pipeline')}{task}Pipeline"
            if not hasattr(kinds, name):
                raise MiningError(f"{self._model!r} is a {own}, which has no {task} form in diffusers")
            pipeline = getattr(kinds, name).from_pipe(pipeline)
        pipeline.set_progress_bar_config(disable=True)
        return pipeline.to(self._device)

    def _kind_of_file(self, kinds: Any) -> tuple[Any, str]:
        """Return the class of the pipeline of a single file, and where its configuration is."""
        from diffusers.loaders import single_file_utils as checkpoints

        if self._files.suffix != ".safetensors":
            raise ValueError("a single file must be .safetensors")
        config = self._config
        if config is None:
            tensors = checkpoints.load_single_file_checkpoint(str(self._files))
            config = checkpoints.fetch_diffusers_config(tensors)["pretrained_model_name_or_path"]
        return getattr(kinds, kinds.DiffusionPipeline.load_config(config)["_class_name"]), config


def _usable(image: Image.Image, blocked: bool) -> Image.Image | OmittedImage:
    if blocked:
        return OmittedImage("safety checker")
    extrema: Any = image.convert("RGB").getextrema()
    if all(low == high for low, high in extrema):
        return OmittedImage("single color")  # such as NaN in float16
    return image


_WEIGHTS = re.compile(r"[\w-]+?(?:\.(?P<variant>\w+))?(?:-\d{5}-of-\d{5})?\.safetensors")
_LARGE = (".bin", ".ckpt", ".pt", ".pth", ".onnx", ".pb", ".msgpack", ".h5", ".safetensors")


def _weights(folder: Path) -> dict[str | None, list[Path]]:
    """Return the weights in a component's folder by variant."""
    found: dict[str | None, list[Path]] = {}
    for path in sorted(folder.glob("*.safetensors")):
        if match := _WEIGHTS.fullmatch(path.name):
            found.setdefault(match["variant"], []).append(path)
    return found


def _only_variant(files: Path) -> str | None:
    """Return the variant of a pipeline's weights if a component has no others."""
    components = [_weights(folder) for folder in files.glob("*/")] if files.is_dir() else []
    variants = {variant for found in components if None not in found for variant in found}
    return variants.pop() if len(variants) == 1 else None


def _digest(files: Path, variant: str | None) -> str:
    """Return a digest of the files that a pipeline consists of: weights of the variant and configuration."""
    chosen = [files] if files.is_file() else [files / "model_index.json"]
    for folder in sorted(files.glob("*/")):
        weights = _weights(folder)
        chosen += weights.get(variant) or weights.get(None) or []
        chosen += sorted(path for path in folder.iterdir() if path.is_file() and path.suffix not in _LARGE)
    digest = sha256()
    for path in chosen:
        if path.is_file():
            with path.open("rb") as file:
                content = file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.relative_to(files).as_posix()} {content}\n".encode())
    return digest.hexdigest()


class RetouchGenerator(DiffusionGenerator):
    """Photos of the category, changed by the prompt.

    Image to image changes the whole image, more for higher strengths. Inpainting needs masks: for a
    background it paints everything except the object, for a texture or a material only the object.

    Args:
        model: as for `DiffusionGenerator`.
        photos: a folder for each category, with masks as for `CompositeGenerator`; the seed selects a photo.
        task: `image-to-image` or `inpainting`.
        strength: above 0 (small changes) and at most 1.
        steps: steps of the sampler; with a strength of 0.6, about 0.6 times as many are run.
        size: height and width; photos are cropped to a centered square.
        **options: other options of `DiffusionGenerator`.
    """

    def __init__(
        self,
        model: str,
        photos: Path,
        *,
        task: str = "image-to-image",
        strength: float = 0.6,
        steps: int = 30,
        size: int = 512,
        **options: Any,
    ) -> None:
        super().__init__(model, steps=steps, size=size, **options)
        if not 0 < strength <= 1:
            raise MiningError(f"strength must be above 0 and at most 1, got {strength:g}")
        if int(steps * strength) < 1:
            raise MiningError(f"steps times strength must be at least 1, got {steps} and {strength:g}")
        self._photos = validate_directory("photos", photos, MiningError)
        self._strength, self._side = strength, size
        self._task = validate_choice("task", task, RETOUCHES)

    @cached_property
    def facts(self) -> Mapping[str, Any]:
        """Pipeline, options, and a digest of all photos."""
        return {
            **super().facts,
            "name": f"diffusers {self._task}",
            "strength": self._strength,
            "pictures": images_digest([self._photos]),  # the earlier name is part of digests
        }

    def check(self, items: Sequence[PlanItem]) -> None:
        """Raise an error if a category has no photos, a needed mask is missing, or an item has no prompt."""
        for category in sorted({item.category for item in items}):
            for path in category_images(self._photos, category):
                if self._task == "inpainting":
                    read_cutout(path)
        super().check(items)

    def _inputs(self, items: Sequence[PlanItem]) -> dict[str, Any]:
        given = [self._photo(item) for item in items]
        options: dict[str, Any] = {"image": [photo for photo, _ in given], "strength": self._strength}
        if self._task == "inpainting":
            options |= {"mask_image": [mask for _, mask in given], **super()._inputs(items)}
        return options

    def _photo(self, item: PlanItem) -> tuple[Image.Image, Image.Image | None]:
        """Return a photo of the category and its mask, which is white where to paint."""
        choices = category_images(self._photos, item.category)
        path = choices[np.random.Generator(np.random.Philox(item.seed)).integers(len(choices))]
        square = (self._side, self._side)
        if self._task == "image-to-image":
            return ImageOps.fit(read_image(path).convert("RGB"), square, Image.Resampling.LANCZOS), None
        cutout = ImageOps.fit(read_cutout(path), square, Image.Resampling.LANCZOS)
        mask = cutout.getchannel("A").point(lambda value: 255 if value > 127 else 0)
        return cutout.convert("RGB"), mask if item.kind in ON_OBJECT else ImageOps.invert(mask)

    @cached_property
    def _pipeline(self) -> Any:
        return self._load(RETOUCHES[self._task])
