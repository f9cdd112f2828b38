"""Files: corrupted images, published sets, galleries, datasets that are read, preprocessing of models."""

# ruff: noqa: E501

from __future__ import annotations

from tests.characterization.scenario import Group, command, python

INPUTS = """
from PIL import Image
inputs.write_idx(Path("mnist"))
inputs.write_digits(Path("digits"))
inputs.write_listed(Path("listed"), 12)
images, labels = inputs.colored(6)
np.savez("toys.npz", images=images, labels=labels)
Path("mixed").mkdir()
photo = inputs.photo(40, 60)
Image.fromarray(photo).save("mixed/a.jpg", quality=90)
Image.fromarray(photo).save("mixed/b.webp", lossless=True)
Image.fromarray(photo[..., 0]).save("mixed/grey.png")
Image.fromarray(np.dstack([photo, photo[..., :1]])).save("mixed/alpha.png")
Image.fromarray(photo).save("mixed/c.bmp")
Image.fromarray(photo).convert("P").save("mixed/palette.png")
Path("mixed/broken.png").write_bytes(b"not an image")
Path("mixed/notes.txt").write_text("x")
"""

CIFAR = """
import pickle
folder = Path("cifar-10-batches-py")
folder.mkdir()
images, labels = inputs.colored(10)
batch = {b"data": images.transpose(0, 3, 1, 2).reshape(10, -1), b"labels": labels.tolist(),
         b"filenames": [f"{i}.png".encode() for i in range(10)]}
(folder / "test_batch").write_bytes(pickle.dumps(batch, protocol=2))
names = b"airplane automobile bird cat deer dog frog horse ship truck".split()
Path("two.yaml").write_text("name: two\\nversion: 1\\ndataset: cifar10\\nscale: cifar\\ncorruptions: [fog, pixelate]\\nseverities: [1, 4]\\n")
(folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": names}, protocol=2))
"""

DATASETS = """
from beaufort.datasets import from_arrays, iterate, kind_of, open_dataset, readers, resized

record("kinds", sorted(readers))
for location in ("toys", "toys.npz", "photos", "folder:photos", "listed", "csv:listed/labels.csv", "mnist", "mnist:mnist",
                 "npy:toys", "cifar-10-batches-py", "cifar10-c:cifar10-c#fog@3", "mnist-c:mnist-c#zigzag", "tiny-imagenet-c:tiny-c#contrast@2",
                 "cifar10-p:cifar10-p#rotate"):
    data = open_dataset(location)
    sample = data[1]
    record(location, [data.name, len(data), data.digest(), data.ids[1], int(data.labels[1]), list(data.classes)[:3],
                      sample.id, digest(sample.image)])
small = resized(open_dataset("photos"), 16)
record("resized", [small.digest(), digest(small[0].image)])
walk = iterate(open_dataset("photos"))
record("walk", [item.id for item in walk])
record("columns", open_dataset("listed").columns if hasattr(open_dataset("listed"), "columns") else None)
images, labels = inputs.colored(6)
record("arrays", from_arrays("arrays", images, labels).digest())
"""

SPLITS = """
from beaufort.datasets import open_dataset
from beaufort.protocols import hold_out, leave_one_out

data = open_dataset("listed")
split = hold_out(data, "camera", "phone")
record("hold out", [np.asarray(split.train).tolist(), np.asarray(split.test).tolist()])
record("each", {value: len(one.test) for value, one in leave_one_out(data, "camera").items()})
"""

MODELS = """
from beaufort.models import IMAGENET_MEAN, IMAGENET_STD, Preprocessing, as_model, load_model
from beaufort.testing import check_model

usual = Preprocessing(size=(224, 224), resize=256, mean=IMAGENET_MEAN, std=IMAGENET_STD)
photo = inputs.photo(300, 400)[None]
record("usual", usual.apply(photo), 6)
record("usual facts", usual.to_dict())
for interpolation in ("bilinear", "bicubic"):
    other = Preprocessing(size=(32, 32), resize=36, interpolation=interpolation)
    record(interpolation, other.apply(photo), 6)
record("same", Preprocessing.from_dict(usual.to_dict()) == usual)
model = load_model("demo:digits")
record("digits", [model.spec.digest, model.spec.label_space, model.spec.name])
digits = np.stack([inputs.digit(i) for i in range(4)])
record("digits logits", model(digits), 5)
inputs.write_onnx(Path("net.onnx"), ["n", 3, 32, 32])
net = load_model("net.onnx", range="0..1")
images, labels = inputs.colored(6)
record("onnx", [net.spec.digest, net.spec.name])
record("onnx logits", net(images), 5)
function = load_model("python:our_models:plain", classes=5, version="2024-05")
record("function", [function.spec.digest, function.spec.source, function.spec.reusable])
unknown = load_model("python:our_models:plain", classes=5)
record("unknown", [unknown.spec.digest, unknown.spec.reusable])
shares = as_model(lambda images: np.tile([[0.25, 0.75]], (len(images), 1)), classes=["dark", "bright"], version="1")
record("findings", [finding.check for finding in check_model(shares)])
"""

TORCH_MODELS = """
import torch
from beaufort.models import as_model, load_model

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(16, 5))
model = as_model(net, name="net", mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2), device="cpu")
images, labels = inputs.colored(6)
record("spec", [model.spec.digest, model.spec.classes])
record("logits", model(images), 4)
record("pixels", model.answer_pixels(torch.from_numpy(images).permute(0, 3, 1, 2) / 255), 4)
torch.jit.save(torch.jit.script(net), "net.pt")
"""

CONTRACTS = """
from beaufort.corruptions import corruptions
from beaufort.testing import CORRUPTION_CONTRACTS, MODEL_CONTRACTS, STORE_CONTRACTS, check_corruption

record("contracts", [sorted(CORRUPTION_CONTRACTS), sorted(MODEL_CONTRACTS), sorted(STORE_CONTRACTS)])
check_corruption(corruptions["contrast"])
"""

CONTRACTS_NOW = """
from beaufort.corruptions import corruptions
from beaufort.testing import CORRUPTION_CONTRACTS, MODEL_CONTRACTS, STORE_CONTRACTS, check_corruption

renamed = {
    "keeps_images_without_prediction": "keeps_images_without_answer",
    "takes_gray": "takes_grey",
    "takes_tensors_if_declared": "takes_tensors_if_it_says_so",
}
every = (CORRUPTION_CONTRACTS, MODEL_CONTRACTS, STORE_CONTRACTS)
record("contracts", [sorted(renamed.get(name, name) for name in contracts) for contracts in every])
check_corruption(corruptions["contrast"])
"""

OWN_CORRUPTION = """
from typing import NamedTuple
from beaufort import corrupt
from beaufort.arrays import Bytes, Field
from beaufort.corruptions import Pixels, corruption
from beaufort.ops import Ops
from beaufort.rng import Random

class Params(NamedTuple):
    side: Pixels
    level: float = 127.0

def draw(random: Random, images: Bytes, p: Params) -> Field:
    return random.uniform((2,), 0.25, 0.75)

@corruption("digital", draw=draw, levels={"imagenet": [Params(side) for side in (12, 18, 26, 36, 48)]}, tensors=False)
def patch(images: Bytes, p: Params, middles: Field, ops: Ops) -> Bytes:
    '''Cover a square of the image with grey.'''
    height, width, channels = images.shape[1:]
    y, x = middles[:, :1] * height, middles[:, 1:] * width
    rows = np.abs(np.arange(height) + 0.5 - y) < p.side / 2
    columns = np.abs(np.arange(width) + 0.5 - x) < p.side / 2
    masks = (rows[:, :, None] & columns[:, None, :]).astype(np.float32)
    return ops.paint(images, masks, (p.level,) * channels, cover=True)

record("patch", [digest(corrupt(inputs.photo(64, 80), level, "patch", image_id="photos/1.jpg")) for level in (1, 3.5, 5)])
"""

DEFAULTS = """
from beaufort.image_sets import corrupt_tree

done = corrupt_tree("photos", "by-default", names=["contrast"], severities=[2], file_format="jpeg")
record("corrupt", [done.done, done.skipped, done.ignored, len(done.failures)])
"""

IMAGES = """
from PIL import Image
from beaufort.images import read_image

for path in sorted(Path("mixed").iterdir()):
    if path.suffix != ".txt" and path.name != "broken.png":
        record(path.name, digest(np.asarray(read_image(path))))
"""

GROUPS = [
    Group(
        "corrupt",
        (
            python("inputs", INPUTS, ignore="*"),
            command(
                "folder",
                "corrupt photos out --corruption fog,contrast,fog@2+jpeg_compression@3 --severity 1,3.5 --json",
            ),
            command("again", "corrupt photos out --corruption fog,contrast --severity 1,2 --json"),
            command("other seed", "corrupt photos out --corruption fog --seed 9 --json"),
            command(
                "mixed formats",
                "corrupt mixed out2 --corruption gaussian_noise --severity 2 --seed 3 --scale relative --jobs 2 --json",
            ),
            command("as png", "corrupt mixed/a.jpg out3 --corruption snow --severity 3 --format png --json"),
            command(
                "as jpeg",
                "corrupt photos out4 --corruption pixelate --severity 1 --format jpeg --quality 70 --scale tiny --json",
            ),
            command("gallery", "gallery photos/ant/0.png --output gallery --subset noise --json"),
            command("gallery seed", "gallery photos/ant/0.png -o gallery3 --subset fog --seed 4 --json"),
            python("defaults", DEFAULTS),
            command("gallery of a digit", "gallery --output gallery2 --subset zigzag --json"),
        ),
    ),
    Group(
        "make",
        (
            python("inputs", INPUTS + CIFAR, ignore="*"),
            command(
                "mnist-c", "make mnist-c mnist mnist-c --corruption fog,zigzag,identity --limit 6 --json"
            ),
            command(
                "cifar10-c", "make cifar10-c cifar-10-batches-py cifar10-c --corruption fog,pixelate --json"
            ),
            command(
                "cifar10-c-bar",
                "make cifar10-c-bar cifar-10-batches-py cifar10-c-bar --corruption lines --limit 2 --json",
            ),
            command("tiny-imagenet-c", "make tiny-imagenet-c photos tiny-c --corruption contrast --json"),
            command(
                "imagenet-c",
                "make imagenet-c photos imagenet-c --corruption jpeg_compression --limit 1 --json",
            ),
            command(
                "imagenet-c-bar",
                "make imagenet-c-bar photos imagenet-c-bar --corruption sparkles --limit 1 --json",
            ),
            command(
                "cifar10-p",
                "make cifar10-p cifar-10-batches-py cifar10-p --corruption rotate --limit 2 --json",
            ),
            command(
                "mnist-c options",
                "make mnist-c mnist mnist-c-extra --corruption pixelate,quantize --seed 5 --jobs 2 --limit 2 --json",
            ),
            command(
                "cifar10-p extra",
                "make cifar10-p cifar-10-batches-py cifar10-p2 --extra --seed 2 --limit 1 --json",
            ),
            python("datasets", DATASETS),
            command(
                "published images",
                "run --model python:our_models:ten --data cifar10-c:cifar10-c --clean cifar-10-batches-py --suite two.yaml --labels identity --first 4 --store published --json",
            ),
            python("splits", SPLITS),
            python("images", IMAGES),
        ),
    ),
    Group(
        "models",
        (
            python("models", MODELS, ignore="*"),
            python("contracts", CONTRACTS, CONTRACTS_NOW),
            python("own corruption", OWN_CORRUPTION),
        ),
        ("onnx",),
    ),
    Group("torch-models", (python("torch", TORCH_MODELS, ignore="*"),), ("torch",)),
    Group(
        "gallery",
        (command("gallery", "gallery --output all --subset common --json"),),
        ("assets",),
        heavy=True,
    ),
]
