"""Pixels: every corruption, sequence, filter and chain."""

# ruff: noqa: E501

from __future__ import annotations

from tests.characterization.scenario import Group, command, python

ASSETS = ("frost", "pessimal_noise")

EVERY = """
from beaufort.corruptions import SCALES, corruptions

def sample(scale):
    if scale == "mnist":
        return np.stack([inputs.digit(0), inputs.digit(1)])
    side = {{"cifar": 32, "tiny": 64, "imagenet": 64, "inception": 64}}[scale]
    return np.stack([inputs.photo(side, side, variant=i) for i in range(2)])

for name, one in sorted(corruptions.items()):
    if (name in {assets}) != {with_assets}:
        continue
    record(f"{{name}} about", [one.group, one.random, one.version, sorted(one.recipes)])
    for scale in one.recipes:
        made = [one(sample(scale), level, scale=scale, ids=["a", "b"], seed=7) for level in range(1, 6)]
        record(f"{{name}} {{scale}}", [digest(images) for images in made])
        record(f"{{name}} {{scale}} params", [one.params(level, scale) for level in (1, 2, 2.5, 3, 4, 5)])
"""

SIZES = """
from beaufort.corruptions import corruptions

for name, one in sorted(corruptions.items()):
    if name in {assets} or "imagenet" not in one.recipes:
        continue
    wide = inputs.photo(48, 72)
    record(f"{{name}} auto", digest(one(wide, 3, scale="auto", ids=["w"])))
    record(f"{{name}} relative", digest(one(wide, 2.5, scale="relative", ids=["w"])))
    record(f"{{name}} reference", digest(one(inputs.photo(64, 64), 2, scale="tiny" if "tiny" in one.recipes
                                         else "imagenet", seed=3, stream="reference")))
"""

GREY = """
from beaufort.corruptions import corruptions, get_corruption_names

grey = inputs.photo(32, 32, 1)
for name in get_corruption_names("all"):
    one = corruptions[name]
    if name not in {assets} and "cifar" in one.recipes:
        record(name, digest(one(grey, 4, scale="cifar", ids=[5])))
"""

LARGE = """
from beaufort.corruptions import corruptions

for name, one in sorted(corruptions.items()):
    if name not in {assets} and "imagenet" in one.recipes:
        made = [one(inputs.photo(224, 224), level, ids=["x"], seed=1) for level in range(1, 6)]
        record(name, [digest(image) for image in made])
"""

NAMES = """
from beaufort.corruptions import SCALES, SCALE_NAMES, SEVERITIES, SUBSETS, get_corruption_names, expand_names

record("scales", dict(SCALES))
record("scale names", list(SCALE_NAMES))
record("severities", list(SEVERITIES))
for subset in sorted(SUBSETS):
    record(subset, sorted(get_corruption_names(subset)))
    record(f"{subset} in order", list(get_corruption_names(subset)))
record("expanded", list(expand_names(["weather", "noise"], kind="corruption")))
"""

CORRUPT = """
from beaufort import corrupt

photo = inputs.photo(64, 80)
record("fog", digest(corrupt(photo, severity=3, corruption_name="fog", image_id="a")))
record("without id", digest(corrupt(photo, 2, "fog")))
record("number", digest(corrupt(photo, severity=1, corruption_number=4)))
record("between", digest(corrupt(photo, 2.5, "fog", image_id="a")))
record("chain", digest(corrupt(photo, corruption_name="fog@2+jpeg_compression@3", image_id="a.jpg")))
record("long chain", digest(corrupt(photo, corruption_name="contrast@1+gaussian_noise@2+pixelate@1", image_id=9)))
record("seed", digest(corrupt(photo, 3, "snow", image_id="a", seed=-4)))
"""

CORRUPT_NOW = """
from beaufort import corrupt
from beaufort.corruptions import get_corruption_names

photo = inputs.photo(64, 80)
record("fog", digest(corrupt(photo, corruption="fog", severity=3, image_id="a")))
record("without id", digest(corrupt(photo, "fog", 2)))
record("number", digest(corrupt(photo, get_corruption_names()[4], severity=1)))
record("between", digest(corrupt(photo, "fog", 2.5, image_id="a")))
record("chain", digest(corrupt(photo, "fog@2+jpeg_compression@3", image_id="a.jpg")))
record("long chain", digest(corrupt(photo, "contrast@1+gaussian_noise@2+pixelate@1", image_id=9)))
record("seed", digest(corrupt(photo, "snow", 3, image_id="a", seed=-4)))
"""

COMPAT = """
from beaufort.compat import imagecorruptions

photo = inputs.photo(64, 64)
np.random.seed(5)
record("names", list(imagecorruptions.get_corruption_names()))
for name in ("snow", "gaussian_noise", "jpeg_compression", "motion_blur"):
    record(name, digest(imagecorruptions.corrupt(photo, corruption_name=name, severity=2)))
"""

CORRUPT_CLASS = """
from PIL import Image
from beaufort.transforms import Corrupt

photo = inputs.photo(64, 64)
rough = Corrupt("common", severity=(1, 5), seed=1)
record("choices", [list(rough.choose(i)) for i in range(12)])
rough = Corrupt(["noise", "blur"], severity=range(1, 6), seed=1)
record("one", digest(rough(photo, image_id="train/0001.png")))
record("epoch", digest(rough.for_epoch(2)(photo, image_id="train/0001.png")))
record("pil", digest(np.asarray(rough(Image.fromarray(photo), image_id=3))))
mixed = Corrupt(["noise", "weather", "fog@2.5", "fog@2+jpeg_compression@3"], severity=[1, 1.5, 2, 2.5, 3],
                weights=[4, 4, 1, 1], p=0.8)
record("mixed", ["-" if choice is None else f"{choice[0]} {choice[1]}".replace(" ", "_")
                 for choice in map(mixed.choose, range(40))])
"""

TENSORS = """
import torch
from beaufort.corruptions import corruptions
from beaufort.transforms import Corrupt

photos = np.stack([inputs.photo(64, 64, variant=i) for i in range(2)])
tensors = torch.from_numpy(photos).permute(0, 3, 1, 2).contiguous()
for name in ("fog", "gaussian_noise", "snow", "glass_blur", "jpeg_compression", "zoom_blur", "elastic_transform"):
    made = corruptions[name](tensors, 3, ids=range(2))
    record(name, digest(made.numpy()))
rough = Corrupt(["noise", "blur"], severity=range(1, 6), seed=1)
record("batch", digest(rough(tensors, image_id=range(2)).numpy()))
bright = Corrupt("brightness", 2, floats=True)
from beaufort.store import score_logits, score_tensor, unpack
rng = np.random.default_rng(0)
logits = rng.normal(size=(6, 12)).round(1).astype(np.float32)
labels = rng.integers(0, 12, 6)
record("scores of tensors", score_tensor(torch.from_numpy(logits), torch.from_numpy(labels)).tolist(), 5)
scored = score_logits(logits, labels)
record("scores of arrays", {name: np.asarray(getattr(scored, name)).tolist() for name in ("top", "p")}, 5)
record("floats", bright(torch.full((3, 64, 64), 0.4002)), 5)
"""

SEQUENCES = """
from beaufort.perturbations import perturbations

for name, one in sorted(perturbations.items()):
    for scale, side in (("cifar", 32), ("tiny", 64)):
        photos = np.stack([inputs.photo(side, side, variant=i) for i in range(2)])
        frames = list(one.frames(photos, scale=scale, ids=["a", "b"]))
        record(f"{name} {scale}", [len(frames), *map(digest, (frames[0], frames[1], frames[-1])),
                                   digest(np.stack(frames))])
"""

FILTERS = """
from beaufort.fronts import estimate_noise, front_kinds, open_front
from beaufort.models import load_model, with_front

colored = np.stack([inputs.photo(48, 48, variant=i) for i in range(2)])
grey = np.stack([inputs.digit(i) for i in range(2)])
record("kinds", sorted(front_kinds))
record("noise", estimate_noise(colored))
for text in ("clahe", "clahe:clip=2,tiles=4", "equalize", "nlm", "nlm:above=0.03", "stretch"):
    front = open_front(text)
    record(text, [front.name, digest(front(colored)), digest(front(grey))])
    record(f"{text} facts", front.facts)
for text in ("ten-crop", "ten-crop:pad=2", "multi-crop"):
    front = open_front(text)
    record(text, [front.name, *map(digest, front.show(colored, (32, 32)))])
for chain in ("nlm:above=0.03", ["stretch", "ten-crop:pad=2"], ["clahe:clip=2", "equalize"]):
    model = with_front(load_model("demo:digits"), chain)
    record(f"{chain} model", [model.spec.name, model.spec.digest])
    record(f"{chain} logits", model(grey), 5)
"""

STREAMS = """
from beaufort.rng import id_words

record("words", np.asarray(id_words(["a", 0, 12, "val/1.png"])).tolist())
"""

SHIFTS = """
from beaufort.conditions import Condition
from beaufort.shifts import shifts

record("shifts", sorted(shifts))
images = np.stack([inputs.photo(32, 32, variant=i) for i in range(2)])
for text in ("toys", "toys/fog@3", "toys/fog@2.5", "toys/fog@2+jpeg_compression@3"):
    condition = Condition.parse(text)
    record(text, [str(condition), digest(condition.apply(images, ids=["a", "b"], seed=3, scale="cifar"))])
    record(f"{text} facts", condition.facts(scale="cifar", seed=7))
for text in ("toys/pgd-linf@1/255,steps=10", "toys/pgd-l2@0.5", "toys/autoattack-linf@8/255",
             "toys/rotate_frames@cifar/7", "toys/gaussian_noise_2_frames@tiny/0", "toys/testbed-pgd-l2@0.1"):
    condition = Condition.parse(text)
    record(text, str(condition))
    record(f"{text} facts", condition.facts(scale="cifar", seed=7))
"""


def fill(code: str, *, with_assets: bool = False) -> str:
    """Return code with the names of the corruptions that need files."""
    return code.format(assets=set(ASSETS), with_assets=with_assets)


GROUPS = [
    Group("corruptions", (python("every corruption", fill(EVERY)), python("names", NAMES))),
    Group(
        "corruption-sizes",
        (
            python("sizes", fill(SIZES)),
            python("grey", fill(GREY)),
            python("corrupt", CORRUPT, CORRUPT_NOW),
            python("imagecorruptions", COMPAT),
            python("Corrupt", CORRUPT_CLASS),
        ),
    ),
    Group(
        "corruptions-with-files",
        (
            python("every corruption", fill(EVERY, with_assets=True)),
            command(
                "suite photos",
                "run --model python:our_models:zoo --data photos --suite photos --first 2 --store p --json",
            ),
            command("pull", "data pull frost --to mirrored"),
            command("verify", "data verify frost --json"),
            command("catalog", "data ls --json", unordered=True),
        ),
        ("assets",),
    ),
    Group("corruptions-large", (python("at 224", fill(LARGE)),), heavy=True),
    Group(
        "shifts",
        (
            python("sequences", SEQUENCES),
            python("conditions", SHIFTS),
            python("filters", FILTERS),
            python("identities", STREAMS),
        ),
    ),
    Group("tensors", (python("corruptions of tensors", TENSORS),), ("torch",)),
]
