"""ImageNet-P's videos: written with the published codec, read back as strips, shown as they are stored."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort._core.errors import BeaufortError, ImageFileError
from beaufort.corruptions.sequences import perturbations
from beaufort.data import load_dataset
from beaufort.data.writers import make_dataset
from beaufort.evaluation import RunOptions
from beaufort.models import Model, as_model
from beaufort.results import Run, evaluate
from beaufort.suites import Suite, get_suite
from beaufort.testing._contracts import example_image

pytest.importorskip("imageio_ffmpeg", reason="imageio-ffmpeg is not installed")

pytestmark = pytest.mark.xdist_group("videos")

TINY = Suite.from_dict(
    {**get_suite("tiny-imagenet-p").as_dict(), "name": "two", "sequences": ["gaussian_noise", "rotate"]}
)
IDS = ["n01440764/a.png", "n01440764/b.png", "n01443537/c.png"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with clean images in `val`, one of them wide, and their videos in `P`."""
    folder = tmp_path_factory.mktemp("videos")
    for number, name in enumerate(IDS):
        file = folder / "val" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(example_image(80, 80 + 40 * number, variant=number)).save(file)
    made = make_dataset("tiny-imagenet-p", folder / "val", folder / "P", names=TINY.sequences, jobs=2)
    assert made.ok, made.failures
    assert made.done == 6
    return folder


def model() -> Model:
    def predict(images: np.ndarray) -> np.ndarray:
        small = images[:, ::8, ::8].reshape(len(images), -1).astype(np.float32)
        weights = np.random.default_rng(1).normal(0, 1, (6, small.shape[1])).astype(np.float32)
        return small @ weights.T / 999

    return as_model(predict, name="net", classes=6, version="1")


def shown(root: Path, clean: str | None = None) -> Run:
    return evaluate(
        model(), TINY, f"tiny-imagenet-p:{root / 'P'}", labels="identity", options=RunOptions(clean=clean)
    )


def test_a_strip_has_the_frames_in_their_order(root: Path) -> None:
    """The codec is lossy: frames are near what was written, and nearer to that than to their neighbors."""
    strips = load_dataset(f"tiny-imagenet-p:{root / 'P'}#rotate")
    assert list(strips.ids) == [name.replace(".png", ".mp4") for name in IDS]
    assert strips.classes == ("n01440764", "n01443537")
    assert load_dataset(f"imagenet-p:{root / 'P'}#rotate").digest() == strips.digest()  # the same layout
    clean = Image.open(root / "val" / IDS[0]).convert("RGB").resize((64, 64), Image.Resampling.BILINEAR)
    wanted = [
        np.asarray(frame)[0].astype(int)
        for frame in perturbations["rotate"].frames(np.asarray(clean)[None], scale="tiny", ids=[IDS[0]])
    ]
    strip = strips[0].image.astype(int)
    assert strip.shape == (31 * 64, 64, 3)
    for number, frame in enumerate(strip.reshape(31, 64, 64, 3)):
        off = [np.abs(frame - wanted[other]).mean() for other in range(31)]
        assert np.argmin(off) == number
        assert off[number] < 3


def test_existing_outputs_are_not_recreated(root: Path) -> None:
    again = make_dataset("tiny-imagenet-p", root / "val", root / "P", names=["rotate"])
    assert (again.done, again.skipped) == (0, 3)


def test_stored_videos_are_shown(root: Path) -> None:
    bare = shown(root)
    assert len(bare.results) == 2 * 31
    assert any("no clean versions" in note for note in bare.notes)
    beside = shown(root, clean=str(root / "val"))
    assert len(beside.results) == 1 + 2 * 31
    one, other = (found.scores(calibration=False).models[0] for found in (bare, beside))
    assert one.movement == other.movement
    assert one.clean is None
    assert other.clean is not None
    made = evaluate(model(), TINY, str(root / "val"), labels="identity").scores(calibration=False).models[0]
    assert made.clean == other.clean  # the same pixels, resized and cropped as the suite says


def test_clean_images_of_another_dataset_are_rejected(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "val", tmp_path / "val")
    (tmp_path / "val" / IDS[1]).rename(tmp_path / "val" / "n01440764" / "z.png")
    with pytest.raises(ImageFileError, match="3 clean images"):
        shown(root, clean=str(tmp_path / "val"))


def test_invalid_videos(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "P", tmp_path / "P")
    broken = tmp_path / "P" / "rotate" / IDS[0].replace(".png", ".mp4")
    broken.write_bytes(b"no film")
    found = shown(tmp_path)
    assert [problem.id for problem in found.problems] == ["n01440764/a.mp4"]
    assert "0 of 31 frames" in found.problems[0].message
    (tmp_path / "P" / "rotate" / ".hidden").mkdir()
    assert ".hidden" not in load_dataset(f"imagenet-p:{tmp_path / 'P'}#rotate").classes
    shutil.rmtree(tmp_path / "P" / "rotate")
    with pytest.raises(BeaufortError, match="rotate"):
        shown(tmp_path)
