"""Plans, and the images that they ask for."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from PIL import Image, PngImagePlugin
from typer.testing import CliRunner

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort.cli import app
from beaufort.data import load_dataset
from beaufort.mining import (
    BUILT_IN,
    CompositeGenerator,
    FolderGenerator,
    MiningError,
    PlanItem,
    generate,
    make_plan,
    open_generated,
    read_generated,
    read_names,
    read_omitted,
    read_plan,
    write_plan,
)
from beaufort.mining.plan import read_rows

CATEGORIES = ("cup", "iron (for clothes)")


@pytest.fixture
def cutouts(tmp_path: Path) -> Path:
    """A red disk with a transparent background, and a blue square with a mask file."""
    folder = tmp_path / "cutouts"
    for category in CATEGORIES:
        (folder / category).mkdir(parents=True)
    y, x = np.mgrid[:40, :40]
    disk = ((y - 20) ** 2 + (x - 20) ** 2 < 200) * 255
    rgba = np.dstack([np.full((40, 40), 255), np.zeros((40, 40)), np.zeros((40, 40)), disk]).astype(np.uint8)
    Image.fromarray(rgba).save(folder / "cup" / "1.png")
    Image.new("RGB", (30, 20), (0, 0, 255)).save(folder / CATEGORIES[1] / "1.jpg")
    mask = np.zeros((20, 30), np.uint8)
    mask[5:15, 5:25] = 255
    Image.fromarray(mask).save(folder / CATEGORIES[1] / "1.mask.png")
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*.png")
    }


def test_every_category_meets_every_nuisance() -> None:
    plan = make_plan(CATEGORIES, each=2)
    assert len(plan) == 2 * 2 * sum(map(len, BUILT_IN.values()))
    assert len({item.id for item in plan}) == len({item.seed for item in plan}) == len(plan)
    assert plan[0].prompt == "A photo of a cup, sky in the background"
    assert {item.kind for item in plan} == set(BUILT_IN)


def test_seed_does_not_depend_on_other_planned_images() -> None:
    alone = make_plan(["cup"], nuisances={"material": ["wood"]})[0]
    assert alone in make_plan(CATEGORIES, each=3)
    assert alone not in make_plan(CATEGORIES, each=3, seed=1)


def test_a_sample_is_part_of_the_whole() -> None:
    some = make_plan(CATEGORIES, sample=5)
    assert len(some) == 5
    assert set(some) < set(make_plan(CATEGORIES))
    assert some == make_plan(CATEGORIES, sample=5)


def test_a_plan_survives_its_file(tmp_path: Path) -> None:
    plan = make_plan(
        ["cup, large", 'the "best" cup', "Tasse groß"], templates={"texture": "{nuisance} {category}!"}
    )
    write_plan(plan, tmp_path / "plan.csv")
    assert read_plan(tmp_path / "plan.csv") == plan


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "a/b"}, "kind must be a valid name of a folder, got 'a/b'"),
        ({"category": "../up"}, "category must be a valid name of a folder, got '../up'"),
        ({"category": ".."}, "category must be a valid name of a folder"),
        ({"nuisance": ""}, "nuisance must be a valid name of a folder, got ''"),
        ({"seed": "x"}, "line 2: seed must be an integer, got 'x'"),
        ({"seed": "-1"}, "seed must be from 0 to 4294967295, got -1"),
    ],
)
def test_bad_rows(tmp_path: Path, change: dict[str, str], message: str) -> None:
    row = {"category": "cup", "kind": "texture", "nuisance": "dotted", "prompt": "p", "seed": "1", **change}
    with (tmp_path / "plan.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, row)
        writer.writeheader()
        writer.writerow(row)
    with pytest.raises(MiningError) as error:
        read_plan(tmp_path / "plan.csv")
    assert message in str(error.value)


def test_bad_plans(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"sample.*from 1.*20"):
        make_plan(CATEGORIES, sample=99)
    with pytest.raises(MiningError, match=r"\{category\}.*\{nuisance\}.*'a cup'"):
        make_plan(CATEGORIES, templates={"texture": "a cup"})
    with pytest.raises(UnknownNameError, match="'textur'"):
        make_plan(CATEGORIES, templates={"textur": "{category} {nuisance}"})
    with pytest.raises(MiningError, match=r"duplicate.* cup .*sky"):
        make_plan(["cup", "cup"])
    (tmp_path / "plan.csv").write_text("category,kind\n")
    with pytest.raises(MiningError, match="no column 'nuisance'"):
        read_plan(tmp_path / "plan.csv")
    (tmp_path / "plan.csv").write_text(f"category,kind,nuisance,prompt,seed\n{'a' * 200_000}\n")
    with pytest.raises(MiningError, match=r"CSV.*UTF-8.*field"):
        read_plan(tmp_path / "plan.csv")
    (tmp_path / "names.csv").write_text(f"name\n{'a' * 200_000}\n")
    with pytest.raises(OptionError, match=r"CSV.*UTF-8.*field"):
        read_names(tmp_path / "names.csv")


def test_composites_have_the_requested_background(cutouts: Path, tmp_path: Path) -> None:
    plan = make_plan(CATEGORIES)
    assert generate(plan, CompositeGenerator(cutouts, size=48), tmp_path / "out") == 20
    made = {(one.item.category, one.item.nuisance): one for one in read_generated(tmp_path / "out")}
    assert len(made) == 20
    for one in made.values():
        assert one.path == tmp_path / "out" / one.item.file
        assert one.generator["name"] == "composite"
        with Image.open(one.path) as opened:
            assert opened.size == (48, 48)
    night = np.asarray(Image.open(made["cup", "night"].path), int)
    assert (night == (255, 0, 0)).all(axis=2).sum() > 200  # the object keeps its color on a background
    assert night.mean(axis=(0, 1))[1] < 60
    wood = np.asarray(Image.open(made["cup", "wood"].path), int)
    assert not (wood == (255, 0, 0)).all(axis=2).any()  # and loses it to a material
    assert (wood == 128).all(axis=2).sum() > 500


@pytest.mark.parametrize(
    ("category", "nuisance", "prompt"),
    [
        ("alarm_clock", "orange", "A photo of an alarm clock with an orange texture"),
        ("cup", "dotted", "A photo of a cup with a dotted texture"),
        ("jeans", "unicorn", "A photo of jeans with a unicorn texture"),
        ("swimming_trunks", "hourglass", "A photo of swimming trunks with an hourglass texture"),
        ("dress_shoe_men", "striped", "A photo of a men's dress shoe with a striped texture"),
        ("t_shirt", "European", "A photo of a T-shirt with a European texture"),
        ("umbrella", "usual", "A photo of an umbrella with a usual texture"),
        ("scissors", "uneven", "A photo of scissors with an uneven texture"),
    ],
)
def test_articles_in_prompts(category: str, nuisance: str, prompt: str) -> None:
    (item,) = make_plan([category], nuisances={"texture": [nuisance]})
    assert item.prompt == prompt


def test_prompts_of_imagenet_d_have_correct_articles() -> None:
    for item in make_plan(read_names("imagenet-d"), nuisances={"background": ["snow"]}):
        name = item.prompt.removeprefix("A photo of ").removesuffix(", snow in the background")
        first, _, noun = name.partition(" ")
        if item.category in ("jeans", "sunglasses", "swimming_trunks"):
            assert first not in ("a", "an")
        else:
            assert first == ("an" if noun[0] in "aeiou" else "a"), name


def test_own_kinds_of_nuisances(cutouts: Path, tmp_path: Path) -> None:
    plan = make_plan(
        ["cup"],
        nuisances={"weather": ["snow"], "viewpoint": ["sky"]},
        templates={"weather": "A photo of a {category} in {nuisance}"},
    )
    assert [item.prompt for item in plan] == ["A photo of a cup in snow", "A photo of a cup, sky"]
    with pytest.raises(UnknownNameError, match="'wether'"):
        make_plan(["cup"], nuisances={"weather": ["snow"]}, templates={"wether": "{category} {nuisance}"})
    write_plan(plan, tmp_path / "plan.csv")
    assert (
        generate(read_plan(tmp_path / "plan.csv"), CompositeGenerator(cutouts, size=32), tmp_path / "out")
        == 2
    )
    data, images = open_generated(tmp_path / "out")
    assert {one.item.kind for one in images} == {"weather", "viewpoint"}
    assert len(load_dataset(f"mined:{tmp_path / 'out'}#weather")) == 1
    assert data.classes == ("cup",)


def test_every_built_in_surface_differs_with_its_seed() -> None:
    from beaufort.mining.composite import SURFACES

    assert set(SURFACES) == {name for names in BUILT_IN.values() for name in names}
    for name, paint in SURFACES.items():
        first, again, other = (paint(40, np.random.Generator(np.random.Philox(seed))) for seed in (1, 1, 2))
        assert first.shape == (40, 40, 3)
        assert first.min() >= 0, name
        assert first.max() <= 1, name
        assert (first == again).all()
        assert (first != other).any(), name


class Killed:
    """A generator that ends after some batches, as a process does."""

    def __init__(self, inner: Any, batches: int) -> None:
        self._inner, self._left, self.batch = inner, batches, inner.batch
        self.facts = inner.facts
        self.check = inner.check

    def make(self, items: Sequence[PlanItem]) -> Any:
        if not self._left:
            raise KeyboardInterrupt
        self._left -= 1
        return self._inner.make(items)


def test_interrupted_and_restarted_gives_the_same_set(cutouts: Path, tmp_path: Path) -> None:
    plan = make_plan(CATEGORIES)
    generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        generate(plan, Killed(CompositeGenerator(cutouts, size=32), 1), tmp_path / "parts")
    assert len(digests(tmp_path / "parts")) == 16
    assert generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "parts") == 4
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")
    assert generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "parts") == 0
    lost = next((tmp_path / "parts").rglob("*.png"))
    lost.unlink()
    assert generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "parts") == 1
    assert digests(tmp_path / "parts") == digests(tmp_path / "whole")


def test_edited_plan_is_rejected(cutouts: Path, tmp_path: Path) -> None:
    plan = make_plan(CATEGORIES)
    generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "out")
    before = digests(tmp_path / "out")
    edited = (PlanItem("cup", "background", "sky", "Something else", plan[0].seed), *plan[1:])
    with pytest.raises(MiningError, match=r"'A.*background'.*\d+"):
        generate(edited, CompositeGenerator(cutouts, size=32), tmp_path / "out")
    with pytest.raises(MiningError, match="different generator"):
        generate(plan, CompositeGenerator(cutouts, size=40), tmp_path / "out")
    assert digests(tmp_path / "out") == before


def test_damaged_image_is_reported(cutouts: Path, tmp_path: Path) -> None:
    plan = make_plan(["cup"])
    generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "out")
    path = tmp_path / "out" / plan[0].file
    deep, huge = PngImagePlugin.PngInfo(), bytearray(path.read_bytes())
    deep.add_itxt("beaufort", "[" * 100_000)
    buffer = io.BytesIO()
    Image.new("RGB", (8, 8)).save(buffer, "PNG", pnginfo=deep)
    huge[16:24] = (60_000).to_bytes(4) * 2  # the size in the header, and its checksum
    huge[29:33] = crc32(huge[12:29]).to_bytes(4)
    for content in (b"\x89PNG no more", buffer.getvalue(), bytes(huge)):
        path.write_bytes(content)
        with pytest.raises(MiningError, match=r"damaged.* generated"):
            generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "out")


def test_requirements_of_composite(cutouts: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(MiningError, match="'sofa'"):
        generate(make_plan(["sofa"]), CompositeGenerator(cutouts), out)
    with pytest.raises(MiningError, match="'lunar'"):
        generate(make_plan(["cup"], nuisances={"background": ["lunar"]}), CompositeGenerator(cutouts), out)
    Image.new("RGB", (9, 9)).save(cutouts / "cup" / "2.png")
    with pytest.raises(MiningError, match=r"2\.mask\.png"):
        generate(make_plan(["cup"]), CompositeGenerator(cutouts), out)
    Image.new("L", (8, 9)).save(cutouts / "cup" / "2.mask.png")
    with pytest.raises(MiningError, match=r"\(8, 9\).* \(9, 9\)"):
        generate(make_plan(["cup"]), CompositeGenerator(cutouts), out)
    Image.new("L", (9, 9)).save(cutouts / "cup" / "2.mask.png")
    with pytest.raises(MiningError, match="is empty"):
        generate(make_plan(["cup"]), CompositeGenerator(cutouts), out)
    assert not out.exists()


def test_surfaces_from_images(cutouts: Path, tmp_path: Path) -> None:
    (tmp_path / "surfaces" / "lunar").mkdir(parents=True)
    Image.new("RGB", (50, 30), (10, 200, 10)).save(tmp_path / "surfaces" / "lunar" / "a.png")
    plan = make_plan(["cup"], nuisances={"background": ["lunar"]})
    generate(plan, CompositeGenerator(cutouts, surfaces=tmp_path / "surfaces", size=32), tmp_path / "out")
    pixels = np.asarray(Image.open(tmp_path / "out" / plan[0].file))
    assert (pixels == (10, 200, 10)).all(axis=2).sum() > 300


def test_images_made_elsewhere(tmp_path: Path) -> None:
    plan = make_plan(["cup"], nuisances={"texture": ["dotted", "striped"]})
    write_plan(plan, tmp_path / "plan.csv")
    (tmp_path / "made").mkdir()
    listed = tmp_path / "made" / "list.csv"

    def write_list(*files: str) -> FolderGenerator:
        rows = [row for _, row in read_rows(tmp_path / "plan.csv")]
        with listed.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0], "file"])
            writer.writeheader()
            writer.writerows({**row, "file": name} for row, name in zip(rows, files, strict=True))
        return FolderGenerator(listed)

    for number in range(2):
        Image.new("RGB", (20, 20), (number, 0, 0)).save(tmp_path / "made" / f"{number}.png")
    with pytest.raises(MiningError, match=r"'\.\./plan\.csv'"):
        generate(plan, write_list("0.png", "../plan.csv"), tmp_path / "out")
    with pytest.raises(MiningError, match="file in the folder"):
        generate(plan, write_list("0.png", "1\0.png"), tmp_path / "out")
    with pytest.raises(MiningError, match=r"no file.* cup .*striped"):
        generate(plan, write_list("0.png", ""), tmp_path / "out")
    assert generate(plan, write_list("0.png", "1.png"), tmp_path / "out") == 2
    row = listed.read_text().splitlines()[1]
    with listed.open("a", newline="") as file:
        file.write(row.replace("0.png", "1.png") + "\n")  # two files for one image
    with pytest.raises(MiningError, match=r"duplicate.* cup .*dotted"):
        FolderGenerator(listed)
    assert np.asarray(Image.open(tmp_path / "out" / plan[1].file))[0, 0].tolist() == [1, 0, 0]


def test_the_commands(cutouts: Path, tmp_path: Path) -> None:
    run = CliRunner().invoke
    (tmp_path / "categories.txt").write_text("cup\n")
    (tmp_path / "words.csv").write_text("code,name\n1,dotted\n2,striped\n")
    plan, out = str(tmp_path / "plan.csv"), str(tmp_path / "out")
    options = ["mine", "plan", str(tmp_path / "categories.txt"), plan]
    result = run(app, [*options, "--nuisances", f"texture={tmp_path / 'words.csv'}", "--each", "2"])
    assert result.exit_code == 0, result.output
    assert "4 images planned" in result.output
    command = ["mine", "generate", plan, out, "--generator", f"composite:{cutouts}", "--set", "size=32"]
    assert "4 images written" in run(app, command).output
    assert "0 images written" in run(app, command).output
    assert run(app, ["mine", "generate", plan, out, "--generator", "magic"]).exit_code == 2
    assert run(app, [*options, "--nuisances", "texture"]).exit_code == 2
    for more, message in (
        ("size=0", "size must be an integer of at least 8, got 0"),
        (f"surfaces={tmp_path / 'absent'}", "surfaces not found"),
        (f"photos={cutouts}", "unknown option of composite 'photos'"),
        ("guidance=2", "unknown option of composite 'guidance'"),
    ):
        outcome = run(app, [*command[:6], "--set", more])
        assert outcome.exit_code == 2
        assert message in " ".join(outcome.output.split()), outcome.output
    words = str(tmp_path / "words.csv")
    twice = run(app, [*options, "--nuisances", f"texture={words}", "--nuisances", f"texture={words}"])
    assert twice.exit_code == 2
    assert "given twice for texture" in " ".join(twice.output.split())
    large = ["imagenet-d", "--sample", "7"]
    before = Path(plan).read_bytes()
    outcome = run(app, ["mine", "plan", *large, plan])
    assert outcome.exit_code == 2
    assert "already contains a different plan" in " ".join(outcome.output.split())
    assert Path(plan).read_bytes() == before
    for _ in range(2):  # the same plan again is no other
        result = run(app, ["mine", "plan", *large, str(tmp_path / "large.csv")])
        assert "7 images planned" in result.output, result.output
    shutil.rmtree(out)


def test_a_tiny_pipeline_of_diffusers(tmp_path: Path) -> None:
    """The real loading code, on a pipeline that is made here."""
    pytest.importorskip("diffusers", reason="diffusers is not installed; the extra mining has it")
    pytest.importorskip("transformers", reason="transformers is not installed; the extra mining has it")
    from beaufort.mining import DiffusionGenerator
    from tests.mining.tiny import save_tiny_pipeline

    save_tiny_pipeline(tmp_path / "tiny")
    plan = make_plan(["cup"], nuisances={"texture": ["dotted", "striped", "blotchy"]})

    def made(batch: int, name: str, **options: Any) -> dict[str, str]:
        generator = DiffusionGenerator(str(tmp_path / "tiny"), steps=2, size=16, batch=batch, **options)
        generate(plan, generator, tmp_path / name)
        return {
            one.item.id: sha256(np.asarray(Image.open(one.path)).tobytes()).hexdigest()
            for one in read_generated(tmp_path / name)
        }

    first = made(3, "first")
    assert len(set(first.values())) == 3
    assert made(3, "again") == first
    facts = read_generated(tmp_path / "first")[0].generator
    assert facts["scheduler"]["name"] == "DDIMScheduler"
    assert facts["steps"] == 2
    made(1, "other", scheduler="DDPMScheduler")
    assert read_generated(tmp_path / "other")[0].generator["scheduler"]["name"] == "DDPMScheduler"
    with pytest.raises(MiningError, match="'Nothing'"):
        made(1, "none", scheduler="Nothing")
    for weights in (tmp_path / "tiny").rglob("*.safetensors"):
        weights.rename(weights.with_suffix(".fp16.safetensors"))
    assert made(3, "fp16") == first
    for weights in (tmp_path / "tiny").rglob("*.safetensors"):
        weights.rename(weights.with_suffix(".bin"))
    with pytest.raises(MiningError, match=r"diffusers.* safetensors"):
        made(1, "pickles")


def save_tiny(folder: Path) -> Path:
    pytest.importorskip("diffusers", reason="diffusers is not installed; the extra mining has it")
    pytest.importorskip("transformers", reason="transformers is not installed; the extra mining has it")
    from tests.mining.tiny import save_tiny_pipeline

    save_tiny_pipeline(folder)
    return folder


def test_a_generator_is_identified_by_its_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from beaufort.mining import DiffusionGenerator
    from tests.mining.tiny import perturb_weights

    tiny = save_tiny(tmp_path / "tiny")
    plan = make_plan(["cup"], nuisances={"texture": ["dotted", "striped"]})
    generate(plan[:1], DiffusionGenerator(str(tiny), steps=1, size=16), tmp_path / "out")
    monkeypatch.chdir(tmp_path)
    assert generate(plan, DiffusionGenerator("./tiny", steps=1, size=16), tmp_path / "out") == 1
    perturb_weights(tiny / "unet" / "diffusion_pytorch_model.safetensors")
    with pytest.raises(MiningError, match="different generator"):
        generate(plan, DiffusionGenerator("tiny", steps=1, size=16), tmp_path / "out")


class FlaggedPipeline:
    """Returns one blocked, one black and one usable image."""

    scheduler = None

    def __call__(self, *, prompt: list[str], **options: Any) -> Any:
        images = [
            Image.new("RGB", (8, 8)),
            Image.new("RGB", (8, 8)),
            Image.radial_gradient("L").resize((8, 8)),
        ]
        flags = [True, False, False]
        return SimpleNamespace(images=images[: len(prompt)], nsfw_content_detected=flags[: len(prompt)])


def test_blocked_and_uniform_images_are_omitted(tmp_path: Path) -> None:
    from beaufort.mining import DiffusionGenerator

    plan = make_plan(["cup"], nuisances={"texture": ["dotted", "striped", "blotchy"]})

    def generator() -> DiffusionGenerator:
        made = DiffusionGenerator("tiny", batch=3)
        vars(made).update(_pipeline=FlaggedPipeline(), facts={"name": "flagged"})
        return made

    assert generate(plan, generator(), tmp_path / "out") == 1
    assert read_omitted(tmp_path / "out") == {plan[0].id: "safety checker", plan[1].id: "single color"}
    assert generate(plan, generator(), tmp_path / "out") == 0  # omitted images are not tried again
    data, images = open_generated(tmp_path / "out")
    assert [one.item for one in images] == [plan[2]]
    assert len(data) == 1


def test_a_checkpoint_in_a_single_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = save_tiny(tmp_path / "tiny")
    import diffusers

    from beaufort.mining import DiffusionGenerator

    kinds: Any = diffusers
    loaded: list[tuple[str, str]] = []

    def from_single_file(path: str, *, config: str, **options: Any) -> Any:
        loaded.append((path, config))
        return kinds.StableDiffusionPipeline.from_pretrained(config)

    monkeypatch.setattr(kinds.StableDiffusionPipeline, "from_single_file", from_single_file)
    (tmp_path / "sd.safetensors").write_bytes(b"weights")
    generator = DiffusionGenerator(str(tmp_path / "sd.safetensors"), steps=1, size=16, config=str(tiny))
    plan = make_plan(["cup"], nuisances={"texture": ["dotted"]})
    assert generate(plan, generator, tmp_path / "out") == 1
    assert loaded == [(str(tmp_path / "sd.safetensors"), str(tiny))]
    facts = read_generated(tmp_path / "out")[0].generator
    assert (facts["model"], facts["pipeline"]) == ("sd.safetensors", "StableDiffusionPipeline")
    (tmp_path / "sd.ckpt").write_bytes(b"a pickle")
    with pytest.raises(MiningError, match=r"must be \.safetensors"):
        generate(plan, DiffusionGenerator(str(tmp_path / "sd.ckpt")), tmp_path / "other")


def test_resuming_decodes_only_what_is_not_in_the_index(
    cutouts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from beaufort.mining import generation

    plan = make_plan(CATEGORIES)
    generate(plan[:15], CompositeGenerator(cutouts, size=32), tmp_path / "out")
    index = tmp_path / "out" / "index.jsonl"
    lines = index.read_text().split("\n")
    index.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:20])  # as after a kill
    decoded: list[Path] = []
    read = generation.read_image_facts

    def read_and_count(path: Path) -> Any:
        decoded.append(path)
        return read(path)

    monkeypatch.setattr(generation, "read_image_facts", read_and_count)
    assert generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "out") == 5
    assert [path.stem for path in decoded] == [plan[14].id]
    assert generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "out") == 0
    assert len(decoded) == 1
    for damage in (b"", b"{}", b"\xff", b'{"format": "beaufort generated images", "version": 2}'):
        decoded.clear()
        index.write_bytes(damage)
        assert generate(plan, CompositeGenerator(cutouts, size=32), tmp_path / "out") == 0
        assert len(decoded) == 20
