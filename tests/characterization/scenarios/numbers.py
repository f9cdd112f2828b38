"""Suites, label spaces, metrics, intervals, tests and the grids of the testbed."""

# ruff: noqa: E501

from __future__ import annotations

from tests.characterization.scenario import Group, command, python

SUITES = """
from beaufort.suites import SHIFT_SUITE_NAMES, SUITE_NAMES, get_suite, read_suite, suite_of_corruptions

record("names", [list(SUITE_NAMES), list(SHIFT_SUITE_NAMES)])
for name in (*SUITE_NAMES, *SHIFT_SUITE_NAMES):
    suite = get_suite(name)
    record(f"{name} digest", suite.digest)
    parts = suite.parts or (suite,)
    record(f"{name} conditions", [[str(condition) for condition in part.conditions()] for part in parts])
    record(f"{name} about", [[suite.version, part.scale, part.baseline, list(part.metrics), part.dataset,
                              [str(step).replace(" ", "-") for step in part.prepare]] for part in parts])
    if not suite.parts:
        kinds = suite.conditions()
        record(f"{name} facts", [kinds[i].facts(scale="imagenet" if suite.scale in ("auto", "relative") else suite.scale, seed=1) for i in (0, len(kinds) // 2, -1)])
record("read", read_suite("mine.yaml").digest)
record("elsewhere", [str(one) for one in get_suite("cifar10-c").conditions("mine")][-2:])
"""

LABELS = """
from beaufort.labels import (LabelSpace, broad_classes, class_ids, class_lists, class_names, devkit_ids,
                             find_space, label_maps, read_truths)
import hashlib

def text(lines):
    return hashlib.sha256("\\n".join(map(str, lines)).encode()).hexdigest()[:16]

for name in sorted(class_lists):
    record(name, [len(class_names(name)), text(class_names(name)), text(class_ids(name))])
for name in sorted(label_maps):
    one = label_maps[name]
    record(f"map {name}", [len(one.classes), text(one.classes), text(one.outputs)])
record("development kit", text(devkit_ids()))
logits = np.random.default_rng(0).normal(size=(3, 10)).astype(np.float32)
for convention in ("restricted", "all"):
    space = LabelSpace(count=10, outputs=((2, 3), (7,), (0, 1, 9)), convention=convention)
    record(f"space {convention}", space.apply(logits), 6)
    record(f"space {convention} facts", space.facts())
"""

METRICS = """
from beaufort.metrics import (BASELINE_NAMES, TABLE_NAMES, Baseline, accuracy, brier_score, calibration_bins,
    corruption_error, entropy, expected_calibration_error, flip_probability, flips, get_baseline, mean_accuracy,
    mean_corruption_error, mean_flip_rate, metrics, negative_log_likelihood, per_class_accuracy, published_table,
    relative_mean_corruption_error, top5_distance, worst_classes)

record("metrics", {name: one.better for name, one in metrics.items()})
for name in BASELINE_NAMES:
    one = get_baseline(name)
    record(f"baseline {name}", [one.clean, one.errors])
for name in TABLE_NAMES:
    table = published_table(name)
    record(f"table {name}", {row: dict(table[row]) for row in table})
alexnet = get_baseline("alexnet")
baseline = alexnet.select(["fog", "snow"], severities=[1, 3, 5])
errors = {"fog": (0.35, 0.52, 0.75), "snow": (0.47, 0.65, 0.80)}
record("mce", mean_corruption_error(errors, baseline))
record("relative mce", relative_mean_corruption_error(errors, 0.24, baseline, alexnet.clean))
record("ce", corruption_error((0.25, 0.5), (0.5, 0.9)))
mine = Baseline(name="mine", clean=0.3, errors={"fog": (0.4, 0.6, 0.8), "snow": (0.5, 0.7, 0.8)}, severities=(1, 3, 5))
record("own", mean_corruption_error(errors, mine.select(["fog", "snow"], [1, 3, 5])))
rng = np.random.default_rng(1)
p = rng.dirichlet(np.ones(6), 200)
labels = rng.integers(0, 6, 200)
top = np.argsort(-p, axis=1)
record("accuracy", [accuracy(labels, top), accuracy(labels, top, k=5)])
record("probabilities", [brier_score(p, labels), negative_log_likelihood(p, labels), entropy(p)])
right = top[:, 0] == labels
sure = np.linspace(0.02, 0.99, 300)
hit = np.random.default_rng(2).random(300) < 0.5 + 0.4 * np.sin(9 * sure)
record("calibration", [expected_calibration_error(sure, hit), expected_calibration_error(sure, hit, bins=7)])
record("bins", calibration_bins(p.max(axis=1), right, bins=5).confidence_sums)
record("classes", per_class_accuracy(labels, top[:, 0]))
record("worst", [[one.label, one.accuracy, one.n] for one in worst_classes(labels, top[:, 0], 2)])
answers = rng.integers(0, 3, (7, 9))
record("flips", [flip_probability(answers), *flips(answers, stride=2).tolist()])
record("moves", top5_distance(np.stack([np.argsort(rng.random((7, 9)), axis=1)[:, :5] for _ in range(4)])))
record("mfr", mean_flip_rate({"snow": 0.058, "tilt": 0.033}, baseline={"snow": 0.11, "tilt": 0.066}))
"""

STATS = """
from beaufort.stats import (binomial_cdf, bootstrap, bootstrap_means, clopper_pearson, cohen_kappa, fleiss_kappa,
    holm, images_to_decide, krippendorff_alpha, letters, looks, mcnemar, mean_interval, mean_p_value, newcombe, rank,
    share_intervals)
from itertools import islice

def ends(one):
    return [one.value, one.low, one.high, one.n]

rng = np.random.default_rng(0)
values = rng.random(80)
record("clopper", [ends(clopper_pearson(hits, n)) for hits, n in ((0, 5), (5, 5), (751, 1000), (3, 17))])
record("level", ends(clopper_pearson(3, 17, level=0.8)))
record("shares", [one.tolist() for one in share_intervals([1, 5, 9], [10, 10, 10])])
record("binomial", binomial_cdf(3, 11, 0.4))
record("mean", ends(mean_interval(values)))
record("mean of wide values", ends(mean_interval(4 * values - 2, low=-2, high=2, level=0.9)))
for name, some in {"rare": np.arange(30) % 15 == 0, "skewed": values**6, "few": values[:4], "two": [0.2, 0.9], "ones": [1, 1, 1, 1],
                   "none": [0, 0, 0], "high": 1 - values**8, "equal": [0.3] * 9}.items():
    record(f"mean of {name}", [ends(mean_interval(some)), ends(mean_interval(some, level=0.5))])
for name, some in {"edge": np.ones((20, 2)), "zero": np.zeros((20, 2)), "mixed": np.eye(20, 2)}.items():
    record(f"bootstrap of {name}", ends(bootstrap(some, lambda means: means.mean(axis=-1), resamples=200)))
record("p", mean_p_value(values - 0.4, low=-1, high=1))
record("decide", [images_to_decide(values, limit=0.6), images_to_decide([1, 1, 1], limit=0.99)])
record("bootstrap", ends(bootstrap(rng.random((60, 3)), lambda means: means.max(axis=-1), resamples=300)))
record("bootstrap means", bootstrap_means(values[:, None], resamples=50, seed=3), 6)
record("newcombe", ends(newcombe(clopper_pearson(30, 100), clopper_pearson(45, 120))))
record("mcnemar", [mcnemar(3, 11), mcnemar(0, 0), mcnemar(40, 25)])
record("holm", holm([0.01, 0.04, 0.03, 0.5]))
apart = np.array([[False, False, True], [False, False, False], [True, False, False]])
record("rank", [[one.name, list(one.groups)] for one in rank("xyz", [3.0, 2.0, 1.0], apart)])
record("looks", list(islice(looks(5000), 12)))
ann = [1, 1, 0, 1, 0, 0, 1, 0, 1, 1] * 5
bob = [1, 1, 0, 1, 0, 1, 1, 0, 1, 0] * 5
record("cohen", ends(cohen_kappa(ann, bob)))
counts = [[3, 0], [0, 3], [2, 1], [0, 3]] * 5
record("fleiss", ends(fleiss_kappa(counts)))
record("krippendorff", ends(krippendorff_alpha([*counts, [1, 1]])))
"""

POWER = """
from beaufort.results import plan_images, spread_of_accuracies
from beaufort.suites import get_suite

spread = spread_of_accuracies(get_suite("cifar10-c"), 0.7)
for drop, probability in ((0.03, 0.9), (0.05, 0.8)):
    plan = plan_images(spread, drop=drop, max_drop=0.01, probability=probability)
    record(f"plan {drop}", [plan.to_fail, plan.to_pass])
plan = plan_images(spread, drop=0.04)
record("usual plan", [plan.to_fail, plan.to_pass, plan.max_drop, plan.probability])
"""

GRID_API = """
from beaufort.testbed import (GRIDS, correlate, effective_robustness, fit_shift, load_grid, relative_robustness)
from beaufort.testbed.place import place
from beaufort.testbed.scores import Score

record("grids", sorted(GRIDS))
grid = load_grid("paper")
for shift in ("imagenetv2", "objectnet", "imagenet-sketch"):
    line = fit_shift(grid, shift)
    record(shift, [line.slope, line.intercept, line.r2, line.n], 7)
found = effective_robustness(grid, "imagenetv2", select=["resnet152-imagenet11k"])
record("rho", found.mean, 7)
record("tau", relative_robustness(grid, "vid-robust-pm10", select=["resnet50-lp"]).mean, 7)
record("correlation", correlate(grid, "avg_pgd", "imagenetv2", select=["v1"]).pearson, 7)
placement = place(load_grid("timm"), [Score("val", 80.1, 50_000), Score("imagenetv2", 72.0, 10_000)])
(standing,) = placement.standings
record("standing", [standing.verdict.replace(" ", "-"), standing.robustness.rho, standing.percentile], 7)
"""

OWN_GRID = """
rng = np.random.default_rng(0)
rows = ["model,type,clean,shifted"]
for i in range(14):
    x = 55 + 3 * i
    rows.append(f"m{i},STANDARD,{x},{x - 12 + rng.normal():.3f}")
rows.append("above,ROBUST,70,66")
Path("own.csv").write_text("\\n".join(rows) + "\\n")
Path("pairs.csv").write_text("model,base_model\\nabove,m4\\n")
Path("own-scores.csv").write_text("setting,accuracy,n\\nclean,76.1,50000\\nshifted,67,10000\\n")
Path("scores.csv").write_text("setting,accuracy,n\\nval,76.1,50000\\nimagenetv2-matched-frequency-format-val,63.2,10000\\n")
"""

GROUPS = [
    Group(
        "definitions",
        (
            python("suites", SUITES),
            python("label spaces", LABELS),
            python("metrics", METRICS),
            python("statistics", STATS),
            python("power", POWER),
        ),
    ),
    Group(
        "lists",
        (
            command("corruptions", "ls corruptions --json"),
            command("subset", "ls corruptions --subset mnist-c --json"),
            command("corruptions as text", "ls corruptions", stdout="names"),
            command("suites", "ls suites --json"),
            command("datasets", "ls datasets --json"),
            command("models", "ls models --json"),
            command("filters", "ls fronts --json", unordered=True),
            command("catalog", "data ls --json", unordered=True),
            command("verify the catalog", "data verify --json"),
            command("verify and delete", "data verify --delete --json"),
            command("pull offline", "data pull cifar10-test"),
            command("version", "--version", stdout="nothing"),
            command("recipes", "train --json"),
            command("validate", "validate mine.yaml --json"),
            python(
                "a bad suite",
                'Path("bad.yaml").write_text("name: bad\\nversion: x\\ncorruptions: [fogg]\\nseverities: [9]\\n")',
                ignore="*",
            ),
            command("validate a bad one", "validate bad.yaml --json"),
            command("new corruption", "new corruption street_dust"),
            python(
                "the new corruption",
                """
record("files", sorted(path.relative_to("street_dust").as_posix() for path in Path("street_dust").rglob("*") if path.is_file() and path.suffix != ".pyc"))
""",
            ),
            command("unknown command", "frobnicate"),
            command("demo offline", "demo --output demo"),
            command("demo photos offline", "demo --imagenet --output demo2", "demo imagenet --output demo2"),
        ),
    ),
    Group(
        "testbed",
        (
            python("inputs", OWN_GRID, ignore="*"),
            python("grids", GRID_API),
            command("ls", "testbed ls --json", "ls grids --json"),
            command(
                "ls one",
                "testbed ls --grid robustbench-cifar10 --json",
                "ls grids robustbench-cifar10 --json",
            ),
            command("fit", "testbed fit --y imagenetv2 --json --resamples 100"),
            command("fit with a knee", "testbed fit --y imagenet-a --json --resamples 100"),
            command(
                "fit probit",
                "testbed fit --y objectnet --scale probit --knee none --json --resamples 100 --seed 4",
            ),
            command("fit own", "testbed fit --grid own.csv --x clean --y shifted --json --resamples 100"),
            command("rho", "testbed rho --y vid-robust-pm10 --select resnet50-lp --json --resamples 100"),
            command(
                "rho own",
                "testbed rho --grid own.csv --x clean --y shifted --select above --n clean=50000 --n shifted=10000 --json --resamples 100",
            ),
            command("tau", "testbed tau --y ytbb-robust-pm10 --select resnet50-lp --json"),
            command(
                "tau own", "testbed tau --grid own.csv --y shifted --pairs pairs.csv --n shifted=1000 --json"
            ),
            command(
                "correlate", "testbed correlate --synthetic avg_pgd --natural imagenetv2 --select v1 --json"
            ),
            command("fit on all", "testbed fit --y imagenetv2 --fit-on all --json --resamples 100"),
            command(
                "rho options",
                "testbed rho --y imagenet-sketch --x val --model resnet50* --fit-on v1 --scale probit --knee none --level 0.9 --seed 3 --resamples 100 --json",
            ),
            command(
                "tau options", "testbed tau --grid latest --y imagenetv2 --model resnet50* --level 0.9 --json"
            ),
            command(
                "correlate options",
                "testbed correlate --grid paper --synthetic avg_corruptions --natural objectnet --x val --fit-on all --scale linear --select v1 --json",
            ),
            command(
                "plot options",
                "testbed plot --y imagenetv2 --output own.png --scores scores.csv --name mine --fit-on all --scale logit",
                "testbed export imagenetv2 --output own.png --grid paper+scores.csv --trend fit=all --trend axis=logit",
            ),
            command("architectures to files", "testbed architectures -o architectures --json"),
            command("architectures", "testbed architectures --json"),
            command("plot svg", "testbed plot --y imagenetv2 -o figure.svg"),
            command("plot png", "testbed plot --grid own.csv --x clean --y shifted -o figure.png"),
            command("plot page", "testbed plot --grid own.csv --x clean --y shifted -o figure.html"),
            command("place", "place --scores scores.csv --grid paper --json"),
            command("place in a small grid", "place --scores own-scores.csv --grid own.csv --x clean --json"),
            command(
                "place timm", "place --scores scores.csv --grid latest --scale probit --level 0.9 --json"
            ),
        ),
    ),
    Group("study", (command("study", "testbed study -o study"),), heavy=True),
]
