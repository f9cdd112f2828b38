"""Given photos, changed by a pipeline of diffusers that is made here."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import BeaufortError
from beaufort.data.images import read_image
from beaufort.mining import MiningError, RetouchGenerator, generate, make_plan, read_generated
from tests.mining.world import make_cutouts

pytestmark = pytest.mark.skipif(
    find_spec("diffusers") is None or find_spec("transformers") is None,
    reason="diffusers or transformers is not installed; the extra mining has them",
)

PLAN = make_plan(["cup", "leaf"], nuisances={"background": ["snow"], "material": ["wood"]})


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.mining.tiny import save_tiny_pipeline

    folder = tmp_path_factory.mktemp("pipeline")
    save_tiny_pipeline(folder / "tiny")
    return str(folder / "tiny")


def retouch(model: str, photos: Path, **options: Any) -> RetouchGenerator:
    return RetouchGenerator(model, photos, **{"steps": 2, "strength": 0.5, "size": 16, **options})


@pytest.mark.parametrize(("task", "pipeline"), [("image-to-image", "Img2Img"), ("inpainting", "Inpaint")])
def test_both_tasks(tiny: str, tmp_path: Path, task: str, pipeline: str) -> None:
    photos = make_cutouts(tmp_path / "photos")
    assert generate(PLAN, retouch(tiny, photos, task=task), tmp_path / "out") == 4
    made = read_generated(tmp_path / "out")
    assert pipeline in made[0].generator["pipeline"]
    assert made[0].generator["strength"] == 0.5
    assert {read_image(one.path).size for one in made} == {(16, 16)}
    assert generate(PLAN, retouch(tiny, photos, task=task), tmp_path / "out") == 0
    with pytest.raises(MiningError, match="different generator"):
        generate(PLAN, retouch(tiny, photos, task=task, strength=1.0), tmp_path / "out")


def test_paint_is_on_the_background_or_the_object(tiny: str, tmp_path: Path) -> None:
    model = retouch(tiny, make_cutouts(tmp_path / "photos"), task="inpainting")
    background, material = (
        np.asarray(model._photo(next(item for item in PLAN if item.kind == kind))[1])
        for kind in ("background", "material")
    )
    assert (background + material == 255).all()
    assert material[8, 8] == 255  # the middle of the object
    assert background[0, 0] == 255


def test_required_photos_and_masks(tiny: str, tmp_path: Path) -> None:
    photos = make_cutouts(tmp_path / "photos")
    Image.new("RGB", (20, 20)).save(photos / "cup" / "2.png")
    with pytest.raises(MiningError, match=r"2\.mask\.png"):
        generate(PLAN, retouch(tiny, photos, task="inpainting"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    generate(PLAN, retouch(tiny, photos), tmp_path / "out")  # as a whole needs none
    with pytest.raises(MiningError, match="'sofa'"):
        retouch(tiny, photos).check(make_plan(["sofa"]))
    for options, message in (
        ({"task": "magic"}, "unknown task 'magic'"),
        ({"strength": 0.0}, "strength must be above 0"),
        ({"steps": 1}, "steps times strength"),
    ):
        with pytest.raises(BeaufortError, match=message):
            retouch(tiny, photos, **options)
    with pytest.raises(MiningError, match="photos not found"):
        retouch(tiny, tmp_path / "nowhere")
