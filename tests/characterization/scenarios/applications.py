"""Attacks, training, leaving out, mining, review, frame sets and the studies."""

# ruff: noqa: E501

from __future__ import annotations

from tests.characterization.scenario import Group, command, python

ATTACKS = """
import torch
from beaufort import evaluate
from beaufort.attacks import PGD, attack_images, attacks, register_attack
from beaufort.conditions import Condition
from beaufort.datasets import from_arrays
from beaufort.models import as_model

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 5))
model = as_model(net, name="net", mean=(0.5, 0.5, 0.5), std=(0.2, 0.2, 0.2), device="cpu")
images, _ = inputs.colored(8, 16)
labels = model(images).argmax(axis=1)
photos = from_arrays("photos", images, labels)
record("attacks", sorted(attacks))
for name in ("pgd-linf", "pgd-l2", "testbed-pgd-linf", "testbed-pgd-l2"):
    epsilon = 0.5 if name.endswith("l2") else 4 / 255
    made = attack_images(attacks[name], model, images, labels, epsilon=epsilon, ids=photos.ids)
    clean = torch.from_numpy(images).permute(0, 3, 1, 2) / 255
    moved = (made - clean).flatten(1)
    record(name, [moved.abs().max(dim=1).values.tolist(), moved.norm(dim=1).tolist(), moved.sum(dim=1).tolist()], 4)
    record(f"{name} predictions", model.answer_pixels(made).argmax(dim=1).numpy())
asked = [Condition.parse(text) for text in ("photos", "photos/pgd-linf@1/255,steps=10", "photos/pgd-linf@8/255,steps=10",
                                            "photos/pgd-l2@0.2", "photos/testbed-pgd-linf@2/255")]
for text in ("photos/testbed-pgd-l2@0.1", "photos/pgd-l2@0.2", "photos/testbed-pgd-linf@2/255"):
    record(f"{text} facts", Condition.parse(text).facts(scale="cifar", seed=3))
found = evaluate([model], asked, photos, "results-under-attack")
record("accuracy", [result.accuracy for result in found.results])
register_attack(PGD(name="seven-steps", norm="linf", steps=7))
record("own", str(Condition.parse("photos/seven-steps@4/255")))
"""

AUTOATTACK = """
import torch
from beaufort.attacks import attack_images, attacks
from beaufort.models import as_model

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 5))
model = as_model(net, name="net", device="cpu")
images, _ = inputs.colored(3, 16)
labels = model(images).argmax(axis=1)
for name, epsilon in (("autoattack-linf", 2 / 255), ("autoattack-l2", 0.2)):
    made = attack_images(attacks[name], model, images, labels, epsilon=epsilon, ids=range(3))
    record(name, model.answer_pixels(made).argmax(dim=1).numpy())
"""

FOOLBOX = """
import torch
from beaufort import evaluate
from beaufort.conditions import Condition
from beaufort.datasets import from_arrays
from beaufort.models import as_model

torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(48, 5))
model = as_model(net, name="net", device="cpu")
images, _ = inputs.colored(4, 16)
photos = from_arrays("photos", images, model(images).argmax(axis=1))
found = evaluate([model], [Condition.parse("photos"), Condition.parse("photos/foolbox@LinfPGD:8/255")], photos, "foolbox")
record("accuracy", [result.accuracy for result in found.results])
"""

TRAIN = """
import torch
from beaufort.models import load_model
from beaufort.training import Recipe, TrainingTensors, get_recipe, recipe_names, train

record("recipes", list(recipe_names() if callable(recipe_names) else recipe_names))
rng = np.random.default_rng(0)
labels = np.arange(64) % 10
images = rng.integers(0, 60, (64, 1, 28, 28), np.uint8)
for image, label in zip(images, labels):
    row, column = divmod(int(label), 5)
    image[0, 4 + 12 * row : 12 + 12 * row, 1 + 5 * column : 6 + 5 * column] = 230
data = TrainingTensors("patches", tuple("0123456789"), torch.from_numpy(images), torch.from_numpy(labels), "sha256:patches")
recipe = Recipe(name="quick", architecture="conv1", architecture_options={"first": 4, "second": 8, "hidden": 16},
                epochs=2, batch=16, block=96, optimizer="adam", rate=0.01, schedule="one-cycle")
made = train(recipe, data, output="quick", device="cpu")
record("steps", made.facts["steps"])
model = load_model("trained:quick", device="cpu")
record("logits", model(images.transpose(0, 2, 3, 1)), 3)
record("right", int((model(images.transpose(0, 2, 3, 1)).argmax(axis=1) == labels).sum()))
"""

RECIPE_FACTS = """
from beaufort.training import get_recipe, recipe_names

for name in (recipe_names() if callable(recipe_names) else recipe_names):
    record(name, get_recipe(name))
"""

LEAVE_OUT_INPUTS = """
inputs.write_listed(Path("listed"), 60)
inputs.write_idx(Path("mnist"), 40)
Path("tiny_net.py").write_text('''
from torch import nn

def make(classes=5):
    return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(3, classes))
''')
Path("tiny.yaml").write_text('''
name: tiny
architecture: conv1
epochs: 2
batch: 16
optimizer: adam
rate: 0.05
''')
"""

MINING_INPUTS = """
from PIL import Image
y, x = np.mgrid[:40, :40]
shapes = {"cup": (y - 20) ** 2 + (x - 20) ** 2 < 250, "kite": (abs(y - 20) < 14) & (abs(x - 20) < 14), "leaf": abs(y - 20) < 9}
colors = {"cup": (230, 30, 30), "kite": (30, 30, 230), "leaf": (30, 200, 30)}
for category, shape in shapes.items():
    Path("cutouts", category).mkdir(parents=True)
    rgba = np.zeros((40, 40, 4), np.uint8)
    rgba[..., :3] = colors[category]
    rgba[..., 3] = shape * 255
    Image.fromarray(rgba).save(f"cutouts/{category}/1.png")
Path("categories.txt").write_text("cup\\nkite\\nleaf\\n")
Path("words.txt").write_text("rust\\nfur\\n")
Path("labels.json").write_text('{"cup": [0], "kite": [1], "leaf": [2]}')
for nuisance in ("rust", "fur"):
    Path("surfaces", nuisance).mkdir(parents=True)
    Image.fromarray(inputs.photo(64, 64, variant=len(nuisance))).save(f"surfaces/{nuisance}/1.png")
Path("world.py").write_text('''
import numpy as np
from beaufort.models import as_model

def shares(images, margin, corner):
    inner = images[:, corner : 32 - corner, corner : 32 - corner].astype(np.int64)
    found = []
    for channel in (0, 2, 1):
        others = np.delete(inner, channel, axis=3).max(axis=3)
        found.append((inner[..., channel] - others > margin).mean(axis=(1, 2)))
    return np.asarray(np.stack(found, axis=1) + np.array([0.003, 0.002, 0.001]), np.float32)

def model(name, margin, corner):
    return as_model(lambda images: shares(images, margin, corner), name=name, classes=["cup", "kite", "leaf"],
                    version=f"{margin} {corner}")

def bold():
    return model("bold", 120, 0)

def middle():
    return model("middle", 60, 6)

def faint():
    return model("faint", 20, 0)
''')
"""

MINING_API = """
from beaufort.mining import CompositeGenerator, generate, make_plan, read_generated, score_answer

plan = make_plan(["cup"], nuisances={"background": ["snow", "night"], "material": ["wood"]})
record("plan", [[one.prompt.replace(" ", "_"), one.seed] for one in plan])
record("made", generate(plan, CompositeGenerator(Path("cutouts"), size=64), Path("few")))
record("nuisances", sorted(one.item.nuisance for one in read_generated(Path("few"))))
answer = "It looks like a bicycle wheel."
record("answers", [score_answer(answer, "wheel", "bicycle"), score_answer(answer, "wheel", "bicycle", scoring="as-published")])
"""

VOTES = """
import csv
import io
import re
from contextlib import closing
from beaufort.review import ReviewRules, create_review, decisions, invite, open_review, standing
from beaufort.review.app import make_app
from starlette.testclient import TestClient

lines = ["file,category,role"]
roles = [""] * 6 + ["control-valid", "control-invalid"] * 3 + ["example-valid", "example-invalid"]
from PIL import Image
Path("cards").mkdir()
rng = np.random.default_rng(0)
for number, role in enumerate(roles):
    Image.fromarray(np.full((24, 32, 3), rng.integers(0, 256, 3), np.uint8)).save(f"cards/{number:03}.png")
    right = "bad" if role.endswith("invalid") or number == 2 else "good"
    lines.append(f"{number:03}.png,{right} chair {number},{role}")
Path("cards/list.csv").write_text("\\n".join(lines) + "\\n")
admin = create_review(Path("cards.review"), Path("cards/list.csv"), rules=ReviewRules(votes=2))
with closing(open_review(Path("cards.review"))) as review:
    tokens = [invite(review, name) for name in ("ann", "bob")]
    with TestClient(make_app(review), base_url="http://127.0.0.1") as client:
        def form(text):
            return dict(re.findall(r'name="(form|showing)" value="([^"]*)"', text))

        codes = []
        for token in tokens:
            client.cookies.clear()
            page = client.get(f"/r/{token}")
            codes.append(page.status_code)
            page = client.post("/begin", data=form(page.text))
            count = 0
            while "showing" in form(page.text) and count < 40:
                good = "no" if re.search(r"bad chair", page.text) else "yes"
                said = dict.fromkeys(("recognizable", "usable", "single"), good)
                page = client.post("/vote", data={**form(page.text), **said})
                count += 1
            codes += [page.status_code, count > 5]
        codes.append(client.get("/admin").status_code)
        client.cookies.clear()
        client.get(f"/r/{admin}")
        codes.append(client.get("/admin").status_code)
    record("codes", codes)
    record("usual rules", ReviewRules())
    record("decisions", [[one.file, one.decision] for one in decisions(review)])
"""

SERVE = """
import os, socket, subprocess, sys, time, urllib.error, urllib.request

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
words = ["review", "serve", "cards.review", "--host", "127.0.0.1", "--port", str(port), "--name", "cards.example", "--https"]
process = subprocess.Popen([sys.executable, "-m", "beaufort", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
status = None
try:
    for _ in range(300):
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/", headers={"Host": "cards.example"})
            status = urllib.request.urlopen(request, timeout=5).status
        except urllib.error.HTTPError as error:
            status = error.code
        except OSError:
            time.sleep(0.1)
            continue
        break
finally:
    process.terminate()
    process.wait(30)
record("status", status)
"""

FRAMES = """
import json
from PIL import Image

rng = np.random.default_rng(3)
sets, labels = {}, {}
for clip in range(4):
    frames = [f"clip{clip}/{number:04d}.png" for number in range(20, 31)]
    sets[frames[5]] = [one for one in frames if one != frames[5]]
    for one in frames:
        labels[one] = ["cat"]
        Path("clips", one).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (16, 16), (int(rng.random() > 0.9), 0, 0)).save(Path("clips", one))
Path("clips/metadata").mkdir()
Path("clips/metadata/pmsets.json").write_text(json.dumps(sets))
Path("clips/metadata/labels.json").write_text(json.dumps(labels))
from beaufort import evaluate
from beaufort.models import as_model
from beaufort.suites import Suite

suite = Suite(name="frames", version=1, dataset="clips", labels=(("cat", (0,)), ("dog", (1,))))
looker = as_model(lambda images: np.eye(2, dtype=np.float32)[images[:, 0, 0, 0].astype(int)], name="looker", classes=2, version="1")
record("accuracy", evaluate([looker], suite, "frame-sets:clips", "kept").results[0].accuracy)
record("anchors", evaluate([looker], suite, "frame-sets:clips#anchors", "anchors").results[0].accuracy)
"""

SHIFTED = """
from PIL import Image
from beaufort import evaluate
from beaufort.labels import class_ids
from beaufort.models import as_model
from beaufort.results import open_parts, score, shift_scores
from beaufort.suites import parse_suite

for place, red in (("pictures", (0, 100, 200)), ("drawings", (0, 100, 99))):
    for number, color in zip((0, 100, 200), red):
        path = Path(place, class_ids("imagenet-1k")[number], "1.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (color, 0, 0)).save(path)
suite = parse_suite('''
name: drawn
version: 1
parts:
  - dataset: pictures
  - dataset: drawings
    counterpart: pictures
''')
reader = as_model(
    lambda images: np.eye(1000, dtype=np.float32)[images[:, 0, 0, 0].astype(int)], name="reader", classes=1000)
evaluate([reader], suite, {"pictures": "pictures", "drawings": "drawings"}, "results-of-drawings")
scores = [score(part) for part in open_parts("results-of-drawings")]
clean, drawn = shift_scores(scores)
record("drop", [drawn.accuracy.value, drawn.clean.value, drawn.drop.value, drawn.drop.low, drawn.drop.high])
"""

REPORT_API = """
from beaufort import evaluate
from beaufort.datasets import from_arrays
from beaufort.models import as_model
from beaufort.report import figure, to_csv, to_html, to_json, to_latex, to_markdown, to_table
from beaufort.suites import Suite
import csv, io, json

images, labels = inputs.colored(45)
data = from_arrays("colors", images, labels)
whole = as_model(lambda shown: shown.mean(axis=(1, 2)).astype(np.float32) @ np.eye(3, 5) / 9, name="whole", classes=5, version="1")
corner = as_model(lambda shown: shown[:, :4, :4].mean(axis=(1, 2)).astype(np.float32) @ np.eye(3, 5) / 9, name="corner", classes=5, version="2")
suite = Suite(name="two", version=1, dataset="colors", scale="cifar", corruptions=("fog", "contrast"), severities=(1, 3, 5))
run = evaluate([whole, corner], suite, data)
scores = run.scores(resamples=200)
record("json", json.loads(to_json(scores)))
rows = list(csv.DictReader(io.StringIO(to_csv(scores))))
record("csv", [[row["metric"], float(row["value"])] for row in rows])
frame = scores.to_pandas()
record("frame", [len(frame), sorted(frame.columns)])
fog = frame.query("metric == 'accuracy' and corruption == 'fog'").pivot(index="severity", columns="model", values="value")
record("fog", fog.to_dict())
for kind in ("curves", "heatmap"):
    figure(run, kind).save(f"{kind}.html")
figure(run, "comparison", model="whole", compare="corner").save("comparison.html")
record("page", "</html>" in to_html(scores))
"""

TORCH_METRICS = """
import torch
from beaufort.metrics.torch import Accuracy, MeanCorruptionError

generator = torch.Generator().manual_seed(0)
top5 = Accuracy(k=5)
mce = MeanCorruptionError("alexnet", corruptions=["fog", "snow"], severities=[1, 5])
for corruption in ("fog", "snow"):
    for severity in (1, 5):
        logits = torch.randn(64, 1000, generator=generator)
        labels = torch.randint(0, 1000, (64,), generator=generator)
        logits[torch.arange(40), labels[:40]] += 5
        top5.update(logits, labels)
        mce.update(logits, labels, corruption, severity)
from beaufort.labels import LabelSpace
for convention in ("restricted", "all"):
    space = LabelSpace(count=1000, outputs=((2, 3), (7,), (0, 1, 9)), convention=convention)
    record(f"space {convention}", space.apply(logits), 5)
record("values", [float(top5.compute()), float(mce.compute())], 6)
"""

WORLD = "python:world"

DIGITS = """
import gzip
Path("mnist").mkdir(exist_ok=True)
rng = np.random.default_rng(0)
for prefix, count in (("train", 300), ("t10k", 60)):
    labels = (np.arange(count) % 10).astype(np.uint8)
    images = rng.integers(0, 40, (count, 28, 28), np.uint8)
    for image, label in zip(images, labels):
        row, column = divmod(int(label), 5)
        image[4 + 12 * row : 12 + 12 * row, 1 + 5 * column : 6 + 5 * column] = 230
    head = np.array([0x803, count, 28, 28], ">u4").tobytes()
    Path("mnist", f"{prefix}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
    head = np.array([0x801, count], ">u4").tobytes()
    Path("mnist", f"{prefix}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(head + labels.tobytes()))
"""

SERVICE = """
import json, os, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Service(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        said = json.dumps(body)
        answer = {"choices": [{"message": {"content": "a cup" if len(said) % 2 else "a kite"}, "finish_reason": "stop"}]}
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
os.environ["KEY"] = "secret"
os.environ["PORT"] = str(server.server_address[1])
threading.Thread(target=server.serve_forever, daemon=True).start()
"""

GROUPS = [
    Group("attacks", (python("attacks", ATTACKS, ignore="*"), python("metrics", TORCH_METRICS)), ("torch",)),
    Group(
        "attack-libraries",
        (python("autoattack", AUTOATTACK, ignore="*"), python("foolbox", FOOLBOX, ignore="*")),
        ("torch", "pyautoattack", "foolbox"),
        heavy=True,
    ),
    Group(
        "training",
        (
            python("inputs", LEAVE_OUT_INPUTS, ignore="*"),
            python("train", TRAIN, ignore="*"),
            python("recipes", RECIPE_FACTS),
            command(
                "train by a file",
                "train tiny.yaml --set architecture=python:tiny_net:make --data listed --side 16 --device cpu --seed 2 -o tiny-made --json",
                ignore="*.pt",
            ),
            command(
                "again",
                "train tiny.yaml --set architecture=python:tiny_net:make --data listed --side 16 --device cpu --seed 2 -o tiny-made --json",
                ignore="*",
            ),
            command(
                "settings",
                "train tiny.yaml --set architecture=python:tiny_net:make --set epochs=1 --set rate=0.1 --limit 30 --data listed --side 16 --device cpu -o other --json",
                ignore="*",
            ),
            command(
                "leave out more",
                "leave-out listed --column camera --recipe tiny.yaml --set architecture=python:tiny_net:make --set epochs=1 --output more --side 16 --only phone --seeds 2 --seen 0.2 --device cpu --json",
                ignore="*.pt *.safetensors *.html",
            ),
            command(
                "run trained",
                "run --model trained:tiny-made --set arch=python:tiny_net:make --data listed --corruption contrast --severity 3 --prepare none --store kept --json --first 10",
                ignore="*",
            ),
            command(
                "leave out",
                "leave-out listed --column camera --recipe tiny.yaml --set architecture=python:tiny_net:make -o cameras --side 16 --only phone,nikon --device cpu --json",
                ignore="*.pt *.safetensors *.html",
            ),
        ),
        ("torch", "safetensors"),
    ),
    Group(
        "mining",
        (
            python("inputs", MINING_INPUTS, ignore="*"),
            command(
                "plan",
                "mine plan plan.csv --categories categories.txt --each 2 --sample 12 --seed 3",
                "mine plan categories.txt plan.csv --each 2 --sample 12 --seed 3",
            ),
            command(
                "plan own",
                "mine plan own.csv --categories categories.txt --nuisances texture=words.txt --template texture='A {category} of {nuisance}'",
                "mine plan categories.txt own.csv --nuisances texture=words.txt --template texture='A {category} of {nuisance}'",
            ),
            command("generate", "mine generate plan.csv images --generator composite:cutouts --size 32"),
            command(
                "select",
                f"mine select images --surrogates {WORLD}:bold,{WORLD}:middle --others {WORLD}:faint --output selection --controls 2 --store answers",
                ignore="answers/*",
            ),
            command(
                "select some",
                f"mine select images --surrogates {WORLD}:bold,{WORLD}:middle --rule 1-of-2 --output selection2 --store answers",
                ignore="answers/*",
            ),
            command("review create", "review create world.review images/kept.csv --votes 2 --seed 4"),
            command("review invite", "review invite world.review ann bob"),
            command(
                "review create options",
                "review create other.review images/kept.csv --title Cards --votes 3 --check-every 5 --min-checks 4 --min-right 0.7 --address http://127.0.0.1:8000",
            ),
            command(
                "review invite options",
                "review invite other.review cem dana --admin --address http://127.0.0.1:8000",
            ),
            command("review renew", "review invite other.review cem --renew"),
            command("review status options", "review status other.review --json"),
            command("review status", "review status world.review --json"),
            command("review decisions", "review decisions world.review -o decisions.csv"),
            command(
                "export",
                "mine export set --images images --selection selection/selection.csv --title Set --license CC0",
                "mine export images selection/selection.csv set --set title=Set --set license=CC0",
                ignore="*.md",
            ),
            command(
                "export folders",
                "mine export set2 --images images --selection selection/selection.csv --layout image-folder",
                "mine export images selection/selection.csv set2 --layout image-folder",
                ignore="*.md",
            ),
            command(
                "evaluate",
                f"mine evaluate set --models {WORLD}:bold,{WORLD}:faint --output evaluation --store answers",
                f"mine evaluate set --model {WORLD}:bold --model {WORLD}:faint --output evaluation --store answers",
                ignore="answers/*",
            ),
            command(
                "surfaces",
                "mine generate own.csv surfaced --generator composite:cutouts --surfaces surfaces --size 48",
            ),
            python(
                "list",
                """
head, *rows = Path("own.csv").read_text().splitlines()
Path("list.csv").write_text("\\n".join([f"{head},file", *(f"{row},photos/ant/{i % 2}.png" for i, row in enumerate(rows))]) + "\\n")
""",
                ignore="*",
            ),
            command("from a list", "mine generate own.csv listed-images --generator folder:list.csv"),
            command(
                "select options",
                "mine select images --surrogates python:world:bold --labels labels.json --convention all --seed 5 --output selection3 --store answers",
                ignore="answers/*",
            ),
            command(
                "export without decisions",
                "mine export set3 --images images --selection selection2/selection.csv --review world.review --decided-only --reviewed-by nobody --labels labels.json",
                "mine export images selection2/selection.csv set3 --review world.review --set decided_only=yes --set reviewed_by=nobody --labels labels.json",
                ignore="*.md",
            ),
            command(
                "evaluate options",
                "mine evaluate set --models python:world:faint --labels labels.json --convention restricted -o evaluation2 --store answers",
                "mine evaluate set --model python:world:faint --labels labels.json,convention=restricted -o evaluation2 --store answers",
                ignore="answers/*",
            ),
            python("mining", MINING_API),
            python("a service", SERVICE),
            command(
                "ask",
                f"mine ask set asked.jsonl --model http://127.0.0.1:$PORT/v1#small --favorites {WORLD}:bold --orders both --scoring as-published --seed 3 --token KEY --store answers --labels labels.json",
                ignore="answers/*",
            ),
            command(
                "evaluate choices",
                f"mine evaluate set --models {WORLD}:bold --choices asked.jsonl --output chosen --store answers",
                f"mine evaluate set --model {WORLD}:bold --choices asked.jsonl --output chosen --store answers",
                ignore="answers/*",
            ),
        ),
    ),
    Group(
        "reproduce",
        (
            python("inputs", DIGITS, ignore="*"),
            command(
                "mnist-c",
                "reproduce mnist-c --rehearse --seeds 1 --device cpu --data mnist=mnist --only fig2 -o study --json",
                ignore="*.pt *.safetensors *answers/* *models/*",
            ),
            command("unknown study", "reproduce nothing --rehearse"),
        ),
        ("torch", "safetensors"),
        heavy=True,
    ),
    Group(
        "ray",
        (
            command(
                "run",
                "run --model python:our_models:toy --suite mine.yaml --data toys --engine ray --workers 1 --store kept --json",
                "run --model python:our_models:toy --suite mine.yaml --data toys --engine ray:workers=1 --store kept --json",
                ignore="*",
            ),
            command("ls", "store ls kept --json"),
        ),
        ("ray",),
        heavy=True,
    ),
    Group(
        "review",
        (
            python("votes", VOTES, ignore="*"),
            command("status", "review status cards.review --json"),
            command("decisions", "review decisions cards.review -o decided.csv"),
            python("serve", SERVE, ignore="*"),
        ),
        ("fastapi", "starlette", "httpx"),
    ),
    Group(
        "frames",
        (
            python("evaluate", FRAMES, ignore="*"),
            command("frames", "frames kept --sets clips -k 0,2,5 --json"),
            python("shifted", SHIFTED, ignore="*"),
            python("report", REPORT_API),
        ),
        ("pandas",),
    ),
]
