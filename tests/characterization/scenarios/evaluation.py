"""Evaluation of small models by command and in Python, and what is derived from the predictions."""

# ruff: noqa: E501

from __future__ import annotations

from tests.characterization.scenario import Group, command, python

TOY = "run --model python:our_models:toy --suite mine.yaml --data toys"
BOTH = "run --model python:our_models:hue --model python:our_models:left --suite mine.yaml --data toys"

MORE_INPUTS = """
inputs.write_onnx(Path("net.onnx"), ["n", 3, 32, 32])
inputs.write_onnx(Path("fixed.onnx"), [4, 3, 32, 32], seed=1)
inputs.write_digits(Path("digits"))
inputs.write_listed(Path("listed"))
images, labels = inputs.colored(30)
np.savez("toys.npz", images=images, labels=labels)
rows = ["id,patient,camera"] + [f"test/{i},p{i // 4},{'ab'[i % 2]}" for i in range(40)]
Path("columns.csv").write_text("\\n".join(rows) + "\\n")
Path("bad.yaml").write_text("name: bad\\nversion: x\\ncorruptions: [fogg]\\nseverities: [9]\\n")
Path("parts.yaml").write_text(
    "name: both\\nversion: 1\\nparts:\\n  - dataset: clean\\n  - dataset: shifted\\n    counterpart: clean\\n")
Path("turns.yaml").write_text("name: turns\\nversion: 1\\ndataset: toys\\nscale: cifar\\n"
                              "sequences: [rotate, gaussian_noise]\\nmetrics: [flip_probability]\\n")
import os
os.environ["GITHUB_STEP_SUMMARY"] = str(Path("summary.md").resolve())
Path("names.txt").write_text("red\\ngreen\\nblue\\ndark\\npink\\n")
Path("grouping.json").write_text('{"0": [0], "1": [1, 3], "2": [2], "3": [], "4": [4]}')
import json
Path("several.json").write_text(json.dumps([[i % 5, (i + 1) % 5] if i % 3 else [i % 5] for i in range(40)]))
"""

API = """
from beaufort import evaluate
from beaufort.datasets import from_arrays
from beaufort.models import as_model
from beaufort.results import compare, gate, open_results, score
from beaufort.store import FileStore, query
from beaufort.suites import Suite

images, labels = inputs.colored(60)
data = from_arrays("toys", images, labels)
hue = as_model(lambda shown: shown.mean(axis=(1, 2)).astype(np.float32) @ np.eye(3, 5, dtype=np.float32) / 9,
               name="hue", classes=5, version="1")
other = as_model(lambda shown: shown[:, :9, :9].mean(axis=(1, 2)).astype(np.float32) @ np.eye(3, 5) / 9,
                 name="other", classes=5, version="2")
suite = Suite(name="two", version=1, dataset="toys", scale="cifar", corruptions=("fog", "contrast"),
              severities=(1, 5))
record("suite", suite.digest)
record("data", data.digest())
done = evaluate([hue, other], suite, data, "results")
for result in done.results:
    record(f"{result.model} {result.condition}", [result.accuracy, result.images])
scores = score(open_results("results"), resamples=200)
for one in scores.models:
    for name, value in one.metrics.items():
        record(f"{one.model} {name}", [value.value, value.low, value.high])
    record(f"{one.model} clean", [one.clean.value, one.clean.low, one.clean.high])
    for name, value in one.corruptions.items():
        record(f"{one.model} {name}", [value.value, value.low, value.high])
divided = score(open_results("results"), baseline="other", calibration=False)
for one in divided.models:
    record(f"{one.model} mce", {name: [value.value, value.low, value.high] for name, value in one.ce.items()})
verdict = gate(open_results("results", models=["other"]), open_results("results", models=["hue"]), max_drop=0.01)
record("gate", [verdict.decision, verdict.drop.value, verdict.drop.low, verdict.drop.high])
store = FileStore("results")
record("cells", sorted(store.cells()))
asked = "select model, condition, images, accuracy from cells order by model, condition"
record("query", query(store, asked).to_pylist())
few = evaluate(hue, ["fog", "contrast"], (images, labels))
record("in memory", [result.accuracy for result in few.results])
short = evaluate([hue], suite, data, precision=20)
record("stopped", [short.stop.images, short.stop.of])
limited = evaluate([hue], suite, data, limit=20, jobs=2, batch_size=7)
record("limited", [result.accuracy for result in limited.results])
"""

SEQUENCE_API = """
from beaufort import evaluate
from beaufort.datasets import from_arrays
from beaufort.models import as_model
from beaufort.suites import Suite

pixels, labels = inputs.colored(8, seed=4)
data = from_arrays("toys", pixels, labels)
model = as_model(lambda images: images[:, :16].mean(axis=(1, 2)) @ np.eye(3, 5), name="color", classes=5, version="1")
suite = Suite(name="turns", version=1, dataset="toys", scale="cifar", sequences=("rotate", "tilt"),
              metrics=("flip_probability",))
found = evaluate(model, suite, data).scores(calibration=False).models[0]
record("flips", {name: one.value for name, one in found.movement["flip_probability"].items()})
"""

OWN = """
from beaufort import evaluate
from beaufort.conditions import Condition
from beaufort.datasets import Reader, from_arrays, readers
from beaufort.metrics import metric
from beaufort.models import as_model
from beaufort.shifts import register_shift
from beaufort.suites import Suite, get_suite, register_suite

@register_shift("darker")
class Darker:
    def __init__(self, level):
        self.share = float(level or 0.5)

    def facts(self, *, seed):
        return {"version": 1, "share": self.share}

    def apply(self, images, *, ids, seed):
        return (images * (1 - self.share)).astype(np.uint8)

night = Suite(name="night", version=1, dataset="photos", shifts=("darker@0.3", "darker@0.9"))
photos = from_arrays("photos", np.full((4, 32, 32, 3), 200, np.uint8), labels=np.zeros(4, int))
bright = as_model(
    lambda images: np.stack([images.mean((1, 2, 3)), np.full(len(images), 99)], 1), name="bright")
found = evaluate([bright], night, photos, "results-of-the-night")
record("conditions", [str(one.condition) for one in found.results])
record("accuracy", [one.accuracy for one in found.results])

@metric(better="lower", of_errors=True)
def road_error(errors, clean):
    '''Three parts clean, one part fog.'''
    return 0.75 * clean + 0.25 * errors["fog"]

def open_noise(location, part):
    images = np.random.default_rng(0).integers(0, 256, (10, 32, 32, 3), np.uint8)
    return from_arrays("static", images, np.arange(10) % 2)

readers.register("static", Reader("static", open_noise, lambda path: False, "nothing on the disk"))
register_suite(Suite(name="in-the-way", version=1, dataset="static", scale="relative", corruptions=("fog",),
                     severities=(1, 3, 5), metrics=("road_error", "mean_accuracy")))
two = as_model(lambda images: images[:, :4].mean(axis=(1, 2))[:, :2], name="two", classes=2, version="1")
scores = evaluate(two, "in-the-way", "static:anything").scores(calibration=False)
record("own metric", {name: [one.value, one.low, one.high] for name, one in scores.models[0].metrics.items()})
record("own suite", get_suite("in-the-way").digest)
"""

LABELS_API = """
from PIL import Image
from beaufort import evaluate
from beaufort.labels import class_ids
from beaufort.models import as_model
from beaufort.results import open_results, score
from beaufort.suites import Suite

tench, retriever, daisy = (class_ids("imagenet-1k")[label] for label in (0, 207, 985))
for red, name in enumerate((tench, retriever, daisy)):
    for number in range(4):
        path = Path("animals", name, f"{number}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (32, 32), (100 * red, 40 + number, 60)).save(path)

def classify(images):
    logits = np.zeros((len(images), 1000), np.float32)
    red = np.rint(images[:, 0, 0, 0] / 100).astype(int).clip(0, 2)
    logits[np.arange(len(images)), np.array([0, 207, 985])[red]] = 5
    logits[:, 500] = 6
    return logits

model = as_model(classify, name="thousand", classes=1000, version="1")
suite = Suite(name="one", version=1, dataset="animals", scale="cifar", corruptions=("contrast",), severities=(1,))
found = evaluate([model], suite, "animals", "results-of-animals", keep_logits=True)
record("restricted", [one.accuracy for one in found.results])
animals = {tench: ["tench", "goldfish"], retriever: list(range(151, 269)), daisy: [985, 500]}
record("grouped", [one.accuracy for one in
                   evaluate([model], suite, "animals", "results-of-animals", labels=animals).results])
record("all", score(open_results("results-of-animals", convention="all")).models[0].clean.value)
record("again", score(open_results("results-of-animals", labels=animals)).models[0].clean.value)
"""

GROUPS = [
    Group(
        "run",
        (
            python("inputs", MORE_INPUTS, ignore="*"),
            command("dry run", f"{TOY} --store kept --dry-run --json"),
            command("first images", f"{TOY} --store kept --first 10 --json"),
            command("all images", f"{TOY} --store kept --json"),
            command("again", f"{TOY} --store kept --json"),
            command("other seed", f"{TOY} --store kept --seed 3 --json --limit 15"),
            command("logits", f"{TOY} --store with-logits --keep-logits --json --first 12"),
            command("threads", f"{TOY} --store threads --jobs 2 --batch-size 7 --json", ignore="*"),
            command(
                "corruptions",
                "run --model python:our_models:hue --data toys --corruption blur,fog@2+jpeg_compression@3 "
                "--severity 1,2.5 --store few --json --first 8",
                ignore="*",
            ),
            command(
                "prepare none",
                "run --model python:our_models:toy --data toys --corruption contrast --severity 3 "
                "--prepare none --store none --json --first 8",
            ),
            command(
                "model options",
                "run --model python:our_models:plain --suite mine.yaml --data toys --set version=7 --set classes=names.txt --store option --json --first 8",
            ),
            command("filter", f"{TOY} --front clahe:clip=2,tiles=8 --store front --json --first 8"),
            command(
                "ten classes",
                "run --model python:our_models:ten --data toys --suite mine.yaml --labels identity --store ten --json",
            ),
            command("ten classes listed", "store ls ten --json"),
            command("ten classes report", "report ten --format json", stdout="json"),
            command("device", f"{TOY} --device cpu --strict --store device --json --first 8"),
            command(
                "workers without ray",
                f"{TOY} --workers 2 --store none2 --json",
                f"{TOY} --engine local:workers=2 --store none2 --json",
            ),
            command("imports", f"--import our_models {TOY} --store imports --first 4 --json"),
            command("unknown corruption", "run --model python:our_models:toy --data toys --corruption fogg"),
            command("no suite", "run --model python:our_models:toy --data toys"),
            command("precision", f"{TOY} --precision 25 --store short --json", ignore="*"),
            command(
                "classes",
                "run --model python:our_models:plain --suite mine.yaml --data toys --set version=7 --classes names.txt --labels identity --convention all --store c --json --first 8",
            ),
            command("grouping", f"{TOY} --labels grouping.json --store g --json --first 8"),
            command("label sets", f"{TOY} --truths several.json --store t --json --first 5"),
            command(
                "parts",
                "run --model python:our_models:hue --suite parts.yaml --data clean=toys --data shifted=toys.npz "
                "--store parts --json",
            ),
            command("parts report", "report parts --format json", stdout="json"),
            command(
                "sequences",
                "run --model python:our_models:hue --suite turns.yaml --data toys --first 6 --store turns --json",
                ignore="*",
            ),
            command("sequences report", "report turns --format json", stdout="json"),
        ),
    ),
    Group(
        "run-onnx",
        (
            python("inputs", MORE_INPUTS, ignore="*"),
            command("check", "check net.onnx --json --set range=0..1"),
            command("check with images", "check net.onnx --images toys --json --set range=0..1 --limit 10"),
            command("check demo", "check demo:digits --json"),
            command(
                "check options",
                "check net.onnx --set range=0..1 --images toys.npz --classes names.txt --labels identity --convention all --device cpu --threads 1 --front stretch --limit 8 --json",
            ),
            command(
                "check under a suite",
                "check net.onnx --set range=0..1 --images toys.npz --suite mine.yaml --limit 8 --json",
            ),
            command("check missing", "check missing.onnx --json"),
            command(
                "onnx arrays",
                "run --model net.onnx --set range=0..1 --suite mine.yaml --data toys.npz --store kept --json --first 10",
            ),
            command(
                "onnx batch",
                "run --model fixed.onnx --set range=0..1 --data toys.npz --corruption fog --severity 2 --store fixed "
                "--json --first 10",
                ignore="*",
            ),
            command(
                "processes",
                "run --model net.onnx --set range=0..1 --suite mine.yaml --data toys.npz --store kept --json --processes 2",
                ignore="*",
            ),
            command("cells", "store ls kept --json"),
            command(
                "digits",
                "run --model demo:digits --suite mnist-c --data digits --store digits-kept --json --first 5",
                ignore="*",
            ),
            command(
                "digits published",
                "report digits-kept --table corruption --published --measure accuracy -o published.csv",
            ),
            command(
                "digits gate",
                "gate digits --store digits-kept --baseline conv1 --metric mce --require 300 --json",
            ),
            command(
                "digits compare",
                "report digits-kept --suite mnist-c --baseline conv1 --format json",
                stdout="json",
            ),
            command("digits report", "report digits-kept --format csv", stdout="csv"),
        ),
        ("onnx",),
    ),
    Group(
        "results",
        (
            python("inputs", MORE_INPUTS, ignore="*"),
            command("run", f"{BOTH} --store kept --json", ignore="*"),
            command("run with logits", f"{TOY} --store logits --keep-logits --json", ignore="*"),
            command("compare", "compare hue left --store kept --json"),
            command(
                "compare by cluster", "compare hue left --store kept --cluster-by columns.csv:patient --json"
            ),
            command(
                "compare by group", "compare hue left --store kept --group-by columns.csv:camera --all --json"
            ),
            command("compare with baseline", "compare hue left --store kept --baseline left --json"),
            command("gate fails", "gate left --reference hue --store kept --max-drop 1 --json"),
            command("gate passes", "gate hue --reference hue --store kept --max-drop 5 --json"),
            command(
                "gate significance",
                "gate left --reference hue --store kept --max-drop 1 --rule significance --json",
            ),
            command("gate undecided", "gate hue --store kept --require 66 --metric mean_accuracy --json"),
            command(
                "gate requirements",
                "gate hue --store kept --min-clean 50 --min-worst 20 --junit gate.xml --json",
            ),
            command(
                "gate clusters",
                "gate left --reference hue --store kept --cluster-by columns.csv:patient --json",
            ),
            command("power", "power hue --reference left --store kept --drop 10 --max-drop 2 --json"),
            command("power stated", "power --suite cifar10-c --accuracy 70 --drop 3 --probability 90 --json"),
            command(
                "power stated more",
                "power --suite imagenet-c --accuracy 40 --clean 76 --differ 10 --alike 0.5 --drop 3 --metric mean_accuracy --json",
            ),
            command("report json", "report kept --format json", stdout="json"),
            command("report csv", "report kept --format csv", stdout="csv"),
            command("report md", "report kept --format md", stdout="table"),
            command("report latex", "report kept --format latex", stdout="table"),
            command("report card", "report kept --format card", stdout="table"),
            command("report page", "report kept --data toys -o report.html"),
            command(
                "report pictures",
                "report kept --pictures scene --ask python:our_models:hue -o asked.html --title T",
            ),
            command("report table", "report kept --table group --measure accuracy -o table.csv"),
            command(
                "report table corruption",
                "report kept --table corruption --measure error --intervals -o table.md",
            ),
            command(
                "report one model",
                "report kept --model hue --format json --resamples 100 --draw 3",
                stdout="json",
            ),
            command(
                "report groups",
                "report kept --group-by columns.csv:camera --cluster-by columns.csv:patient --format json",
                stdout="json",
            ),
            command("report seeds", "report kept --seeds recipe=hue,left --format json", stdout="json"),
            command("report all labels", "report kept --convention all --format json", stdout="json"),
            command("report unknown", "report missing --format json"),
            command("place", "place --store kept --model hue --json"),
            command(
                "compare options",
                "compare hue left --store kept --suite mine.yaml --seed 0 --seeds recipe=hue,left --json",
            ),
            command(
                "gate options",
                "gate left --reference hue --store kept --suite mine.yaml --seed 0 --baseline hue --max-drop 1 --github-summary --json",
            ),
            command(
                "gate summary", "gate left --reference hue --store kept --max-drop 1 --github-summary --json"
            ),
            command(
                "power options",
                "power hue --reference left --store kept --suite mine.yaml --drop 10 --seed 0 --baseline none --cluster-by columns.csv:patient --json",
            ),
            command(
                "report options",
                "report kept --suite mine.yaml --seed 0 --baseline left --output options.json",
            ),
            command("report label sets", "report logits --truths several.json --format json", stdout="json"),
            command("report grouping", "report logits --labels grouping.json --format json", stdout="json"),
            command(
                "report published", "report kept --table corruption --published --format md", stdout="table"
            ),
            command(
                "place options",
                "place --store kept --model hue --grid latest --x val --fit-on all --seed 3 --json",
            ),
            command("place several", "report kept kept --format json", stdout="json"),
        ),
    ),
    Group(
        "store",
        (
            python("inputs", "Path('lines.csv').write_text('a,b\\n1,2\\n3,4\\n')", ignore="*"),
            command("run", f"{TOY} --store kept --first 20 --json", ignore="*"),
            command("run other", f"{TOY} --store other --json", ignore="*"),
            command(
                "run second",
                "run --model python:our_models:hue --suite mine.yaml --data toys --store third --json",
                ignore="*",
            ),
            command("ls", "store ls kept --json"),
            command("verify", "store verify kept --json"),
            command(
                "query",
                'query "select condition, images, accuracy, nll from cells order by condition" --store kept --json',
            ),
            command(
                "query predictions",
                'query "select id, label, top from predictions order by condition, id limit 7" --store kept --json',
            ),
            command("query pieces", 'query "select count(*) as n from pieces" --store kept --json'),
            command("query refused", "query \"select * from read_csv('mine.yaml')\" --store kept --json"),
            command(
                "query unsafe",
                "query \"select count(*) as n from read_csv('lines.csv')\" --store kept --unsafe --json",
            ),
            command(
                "export unsafe",
                "store export kept lines-again.csv --unsafe --sql \"select * from read_csv('lines.csv')\"",
                "results query \"select * from read_csv('lines.csv')\" --store kept --output lines-again.csv --unsafe",
            ),
            command(
                "export csv", "store export kept cells.csv", "results query --store kept --output cells.csv"
            ),
            command(
                "export parquet",
                'store export kept rows.parquet --sql "select id, label, top from predictions order by condition, id"',
                'results query "select id, label, top from predictions order by condition, id" --store kept --output rows.parquet',
            ),
            command(
                "export json",
                'store export kept cells.json --sql "select condition, accuracy from cells order by condition"',
                'results query "select condition, accuracy from cells order by condition" --store kept --output cells.json',
            ),
            command("merge", "store merge kept other"),
            command("after merge", "store ls kept --json"),
            command("merge third", "store merge kept third"),
            command("after third", "store ls kept --json"),
            command("gc dry", "store gc kept --dry-run", "results verify kept"),
            command("gc", "store gc kept", ignore="*"),
            command("gc yes", "store gc kept --yes", ignore="*"),
            command("after gc", "store ls kept --json"),
            python(
                "damage",
                """
path = sorted(Path("kept").rglob("*.parquet"))[0]
path.write_bytes(path.read_bytes()[:-50])
record("path", path.as_posix())
""",
                ignore="*",
            ),
            command("verify damaged", "store verify kept --json"),
            command("gc damaged", "store gc kept --yes", ignore="*"),
            command("verify mended", "store verify kept --json"),
            command("complete", f"{TOY} --store kept --json", ignore="*"),
            python(
                "files",
                """
record("files", sorted(path.as_posix() for path in Path("kept").rglob("*.parquet")))
""",
            ),
        ),
    ),
    Group(
        "evaluate",
        (
            python("evaluate", API, ignore="*"),
            python("sequences", SEQUENCE_API, ignore="*"),
            python("own shift, metric, suite and dataset", OWN, ignore="*"),
            python("labels", LABELS_API, ignore="*"),
        ),
    ),
]
