"""What is spelled differently today than at the recorded commit.

A rename goes here once and then holds for every scenario. A scenario for which a replacement is not enough
gets its own `now` spelling, which is used as it stands.
"""

from __future__ import annotations

import re
import shlex

COMMANDS: dict[str, str] = {
    "data ls": "ls files",
    "ls fronts": "ls filters",
    "query": "results query",
    "review decisions": "review status",
    "store gc": "results verify --repair",
    "store ls": "results query --store",
    "store merge": "results merge",
    "store verify": "results verify",
    "testbed architectures": "reproduce architectures",
    "testbed plot": "testbed export",
    "testbed rho": "testbed robustness",
    "testbed study": "reproduce natural-shifts",
    "testbed tau": "testbed robustness --pairs grid",
}
"""Commands that moved, by the first words of the command line: {"query": "results query"}."""

OPTIONS: dict[str, str] = {
    "--convention": "--labels convention=",
    "--front": "--filter",
    "--truths": "--labels sets=",
    "check --images": "--data",
    "check --threads": "--set threads=",
    "compare --seeds": "--training-runs",
    "data pull --to": "--output",
    "frames --sets": "VALUE",
    "gallery --subset": "--corruption",
    "gate --min-clean": "--require clean=",
    "gate --min-worst": "--require worst=",
    "leave-out --column": "VALUE",
    "leave-out --recipe": "VALUE",
    "ls --subset": "VALUE",
    "mine ask --token": "--set token=",
    "mine generate --size": "--set size=",
    "mine generate --surfaces": "--set surfaces=",
    "mine select --rule": "--failures",
    "place --fit-on": "--trend fit=",
    "place --level": "--intervals level=",
    "place --scale": "--trend axis=",
    "place --seed": "--intervals seed=",
    "place --x": "--trend x=",
    "power --accuracy": "--assume accuracy=",
    "power --alike": "--assume alike=",
    "power --clean": "--assume clean=",
    "power --differ": "--assume differ=",
    "report --ask": "--examples model=",
    "report --draw": "--intervals seed=",
    "report --intervals": "",
    "report --measure": "--table measure=",
    "report --no-intervals": "--table intervals=no",
    "report --pictures": "--examples",
    "report --published": "--table published=yes",
    "report --resamples": "--intervals resamples=",
    "report --seeds": "--training-runs",
    "review create --check-every": "--set check_every=",
    "review create --min-checks": "--set min_checks=",
    "review create --min-right": "--set min_right=",
    "review create --title": "--set title=",
    "review create --votes": "--set votes=",
    "run --batch-size": "--config batch_size=",
    "run --clean": "--config clean=",
    "run --first": "--config first=",
    "run --jobs": "--engine local:",
    "run --keep-logits": "--config keep_logits=true",
    "run --prepare": "--config prepare=",
    "run --processes": "--engine processes:",
    "run --strict": "--config strict=true",
    "store gc --yes": "--delete",
    "testbed --fit-on": "--trend fit=",
    "testbed --knee": "--trend knee=",
    "testbed --level": "--intervals level=",
    "testbed --natural": "VALUE",
    "testbed --resamples": "--intervals resamples=",
    "testbed --scale": "--trend axis=",
    "testbed --seed": "--intervals seed=",
    "testbed --synthetic": "VALUE",
    "testbed --x": "--trend x=",
    "testbed --y": "VALUE",
    "testbed rho --model": "--select",
    "testbed tau --model": "--select",
}
"""Options with a new name, in every command: {"--front": "--filter"}.

A key may name the command, as "run --front"; such keys go before the others. An empty value drops a flag.
"--set size=" and "--engine local:" stand for an option whose value starts like this; VALUE makes the value an
argument.
"""

CODE: dict[str, str] = {
    "beaufort.arrays import": "beaufort.corruptions import",
    "beaufort.attacks import": "beaufort.suites.attacks import",
    "beaufort.conditions import": "beaufort.suites.conditions import",
    "beaufort.datasets import": "beaufort.data import",
    "beaufort.fronts import": "beaufort.models.filters import",
    "beaufort.image_sets import": "beaufort.data.writers import",
    "beaufort.images import": "beaufort.data.images import",
    "beaufort.labels import": "beaufort.data.labels import",
    "beaufort.ops import": "beaufort.corruptions import",
    "beaufort.perturbations import": "beaufort.corruptions.sequences import",
    "beaufort.protocols import": "beaufort.data.protocols import",
    "beaufort.review import": "beaufort.mining.review import",
    "beaufort.review.app import": "beaufort.mining.review.app import",
    "beaufort.rng import Random": "beaufort.corruptions import Random",
    "beaufort.rng import id_words": "beaufort.corruptions.rng import id_words",
    "beaufort.shifts import": "beaufort.suites.shifts import",
    "beaufort.stats import": "beaufort.metrics.stats import",
    "beaufort.testbed.place import": "beaufort.testbed import",
    "beaufort.testbed.scores import": "beaufort.testbed import",
    "beaufort.transforms import": "beaufort.corruptions import",
    "beaufort.store import score_logits, score_tensor, unpack": (
        "beaufort.models.scoring import score_logits, score_tensor"
    ),
    "from beaufort import evaluate": (
        "from beaufort import evaluate\nfrom beaufort.evaluation import RunOptions"
    ),
    "data, precision=20)": "data, options=RunOptions(precision=20))",
    "jobs=2, batch_size=7)": 'engine="local:2", options=RunOptions(batch_size=7))',
    "keep_logits=True)": "options=RunOptions(keep_logits=True))",
    "answer_pixels": "predict_pixels",
    "broad_classes": "superclasses",
    "front.show(": "front.apply(",
    "front_kinds": "filter_kinds",
    "find_space": "find_label_space",
    "kind_of": "dataset_kind",
    "open_dataset": "load_dataset",
    "open_front": "load_filter",
    "read_truths": "read_label_sets",
    "score_answer": "score_reply",
    "share_intervals": "proportion_intervals",
    "suite_of_corruptions": "suite_from_corruptions",
    "with_front": "with_filter",
    "open_review, standing": "open_review, review_status",
    '"--name", "cards.example", "--https"': '"--address", "https://cards.example"',
    'place(load_grid("timm"), [Score("val", 80.1, 50_000), Score("imagenetv2", 72.0, 10_000)])': (
        'place([Score("val", 80.1, 50_000), Score("imagenetv2", 72.0, 10_000)], "timm")'
    ),
    'level, "patch"': '"patch", level',
}
"""Replacements in code, longest first: {"beaufort.fronts import": "beaufort.models.filters import"}."""

KEYS: dict[str, str] = {
    "answers": "predictions",
    "told_apart": "significant",
    "share_kept": "fraction_kept",
    "answered": "predicted",
}
"""Keys of JSON, columns of CSV and fields that have a new name: {"old": "new"}."""

FILES: dict[str, str] = {f"{folder}/answers/": f"{folder}/predictions/" for folder in ("cameras", "more")}
"""Parts of the names of written files that are new: {"old": "new"}."""

VALUES: dict[str, str] = {"absent": "missing", "whole": "complete"}
"""New names of the states of files that commands report: {"old": "new"}."""

CHANGED: dict[str, dict[str, str]] = {
    "run-onnx": {r"digits report: stdout: low\[\]": "the interval of ECE is narrower"},
    "store-before": {
        r"report: stdout: configs\.mine\.left_out\.toy": "models that were not named are not listed",
        r"after: images shown to the models, at least and at most": "models are checked before a run",
        r"compare: stdout: (family|differences\[\]\.(difference\.(low|high)|p))": (
            "paired intervals, adjusted within two families"
        ),
        r"compare: stdout: calibration\[\]\.difference\.(low|high)": "the interval of ECE is narrower",
    },
    "corruptions": {
        r"every corruption: (snow|zoom_blur) \w+ params: \[\]\.share": (
            "the weight of two mixed severities is the attribute `weight`; stored facts keep `share`"
        ),
    },
    "run": {
        r"label sets: file t/predictions/.*: (columns|values)": "the column `truth` is `label_set`",
    },
    "mining": {
        r"select( \w+)?: file selection\d?/transfer\.csv: share(_\w+)?(\[\]|#)": (
            "columns have the names fraction, fraction_low, …"
        ),
        r"ask: file asked\.jsonl: \[\]\.(truth|truth_first)": "columns have other names",
        r"export( folders)?: file set2?/metadata\.parquet: (columns|values)": (
            "`file_name` instead of `file`, and predictions as a list instead of a map, for Hugging Face"
        ),
    },
    "review": {
        r"votes: usual rules: min_right": "the fraction of a reliable reviewer in a sequential test",
    },
    "results": {
        r"place( options)?: stdout: shifts\[\]\.(p|p_holm|percentile|scatter)": (
            "the verdict is about the scatter of the fitted models, no longer about the sampling noise alone"
        ),
        r"gate (options|summary): file summary\.md": "a difference is stated in words",
    },
    "lists": {
        r"models: stdout: kinds.*": "kinds of models are new",
        r"corruptions( as text)?: stdout: (#|\[\]\.(group|name|random|scales\[\]|version)|recorded.*)": (
            "greyscale is new"
        ),
        r"corruptions as text: stdout": "greyscale is new",
        r"suites: stdout: .*": ("twelve suites are new; tests/suites has the digest of each of them"),
    },
    "definitions": {r"suites: names: \[\]\[\]": "the same suites are new"},
    "shifts": {r"conditions: shifts": "the shifts of ImageNet-3DCC and streams are new"},
    "make": {r"datasets: kinds": "imagenet-3dcc and imagenet-x are new"},
    "study": {
        r"study: file study/(README\.md|since-2020\.csv: training_data\[\])": (
            "entries are counted by the scatter of the fitted models, and three DPNs saw more data"
        ),
    },
    "reproduce": {
        r"mnist-c: file study/README\.md": "claims about losses are decided on mean accuracy",
        r"mnist-c: file study/errors-.*\.png": "misclassified digits are chosen at random",
    },
    "testbed": {
        r"place( timm| in a small grid)?: stdout: shifts\[\]\.(p|p_holm|percentile|scatter)": (
            "the verdict is about the scatter of the fitted models, no longer about the sampling noise alone"
        ),
        r"grids: standing": "three entries of timm's are no longer in the fit, see below",
        r"ls: stdout: grids\[\]\.(fitted|groups\..*|types\..*)": (
            "dpn68b, dpn92 and dpn107 of timm saw more data than ImageNet-1k, as the testbed states"
        ),
        r"plot (options|png): file (own|figure)\.png": "figures have the prediction interval",
    },
}
"""Facts that were changed on purpose after the reorganization, with the reason, by group and pattern. What is
listed here is not compared, so it needs tests of its own."""


def is_changed(group: str, fact: str) -> bool:
    """Return whether a fact, as `scenario: fact`, was changed on purpose."""
    return any(re.fullmatch(pattern, fact) for pattern in CHANGED.get(group, {}))


def command(line: str) -> str:
    """Return a command line in today's spelling."""
    words = shlex.split(line)
    own = {old: new for old, new in OPTIONS.items() if " " in old}
    start = 2 if words[0] == "--import" else 0
    first = [word for word in words[start : start + 2] if not word.startswith("-")]
    options = {old: new for old, new in OPTIONS.items() if " " not in old}
    for old, new in own.items():
        *named, option = old.split()
        if first[: len(named)] == named:
            options[option] = new
    made: list[str] = []
    prefix = ""
    for word in words:
        if word not in options:
            made.append(prefix + word)
            prefix = ""
            continue
        if options[word] == "VALUE":
            continue
        option, _, value = options[word].partition(" ")
        prefix = value if value.endswith(("=", ":")) else ""
        made += [text for text in (option, value) if text and text != prefix]
    text = shlex.join(made)
    for old, new in sorted(COMMANDS.items(), key=lambda pair: -len(pair[0])):
        if text == old or text.startswith(f"{old} "):
            return new + text[len(old) :]
    return text


def code(text: str) -> str:
    """Return code in today's spelling."""
    if not CODE:
        return text
    pattern = "|".join(re.escape(old) for old in sorted(CODE, key=len, reverse=True))
    return re.sub(pattern, lambda match: CODE[match[0]], text)
