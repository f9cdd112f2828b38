"""The page works without scripts, escapes names, is small, and is deterministic."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import pytest

from beaufort._core.errors import OptionError
from beaufort._core.text import without_folders
from beaufort.report import examples_of_data, figure, to_html, write_report
from beaufort.report.figure_numbers import baseline_errors, breaking_points, find_worst_classes, mean_curves
from beaufort.report.headline import about, headline
from beaufort.report.provenance import _command, provenance_facts
from beaufort.results import Scores
from beaufort.suites import get_suite
from tests.commands import shows

EVIL = "<script>alert(1)</script>"


class Reader(HTMLParser):
    """The text of a page, its tags, and what it would fetch."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.text = ""
        self.scripts: list[str] = []
        self._in = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        found = dict(attrs)
        self._in = tag if tag in ("script", "style") else self._in
        if tag == "script":
            self.scripts.append("")
        self.ids += filter(None, [found.get("id")])
        self.addresses += [str(found[key]) for key in ("src", "href") if key in found]

    def handle_endtag(self, tag: str) -> None:
        self._in = "" if tag == self._in else self._in

    def handle_data(self, data: str) -> None:
        if self._in == "script":
            self.scripts[-1] += data
        elif not self._in:
            self.text += data.replace("\u00a0", " ")


def test_a_suite_of_one_condition(make: SimpleNamespace) -> None:
    """One version of each image is no curve."""
    suite = replace(make.suite, corruptions=("fog",), severities=(3,), clean=False)
    scores = make.scored(make.results_of(["one"], suite, 1))
    page = Reader(to_html(scores))
    assert "1 condition, 1 prediction" in page.text
    assert "over 1 base image" in page.text
    assert "bootstrap" in page.text
    assert "curves" not in page.ids
    with pytest.raises(OptionError, match="several severities"):
        figure(scores, "curves")
    clean = make.scored(make.results_of(["one"], replace(suite, clean=True), 1))
    assert shows(Reader(to_html(clean)).text, "Accuracy", "clean images (0)", "severity 3")


def test_without_scripts_the_numbers_are_there(scores: Scores) -> None:
    page = Reader(to_html(scores))
    first = headline(scores, scores.models[0])
    assert first.sentence in page.text
    assert about(scores) in page.text
    for model in scores.models:
        assert model.model in page.text
        low, high = (f"{100 * value:.1f}" for value in (model.headline.low, model.headline.high))
        assert f"{100 * model.headline.value:.1f} [{low}, {high}]" in page.text
    assert "unfinished lacks 9 conditions" in page.text
    assert page.tags.count("table") == 3
    assert len(set(page.ids)) == len(page.ids)


def test_nothing_comes_from_elsewhere(scores: Scores) -> None:
    page = to_html(scores)
    reader = Reader(page)
    assert all(address.startswith(("#", "data:")) for address in reader.addresses)
    assert "default-src 'none'; img-src data:; style-src 'unsafe-inline';" in unescape(page)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", reader.scripts[-1])


def test_names_cannot_become_markup(make: SimpleNamespace) -> None:
    names = [EVIL, "'\"><img src=x onerror=alert(1)>", "</title><b>", "-->", "\u2028${alert(1)}", "$title"]
    scores = make.scored(make.results_of(names, make.suite, 40, [*make.classes[:3], EVIL]))
    page = to_html(scores, title=f"{EVIL} & co")
    reader = Reader(page)
    assert reader.tags.count("script") == 2
    assert "img" not in reader.tags
    assert not re.search("[<>&]", reader.scripts[0])
    data = json.loads(reader.scripts[0])
    assert {model["name"] for model in data["models"]} == set(names)
    assert EVIL in data["classes"].values()
    assert f"{EVIL} & co" in reader.text


def test_the_data_are_the_scores(scores: Scores) -> None:
    data = json.loads(Reader(to_html(scores)).scripts[0])
    for found, model in zip(data["models"], scores.models, strict=True):
        rows = [value for condition, value in model.conditions.items() if not condition.clean]
        for triple, estimate in zip(found["accuracy"], rows, strict=True):
            assert triple == pytest.approx([estimate.value, estimate.low, estimate.high], abs=5e-5)
        assert found["calibration"]["5"]["ece"][0] == pytest.approx(
            model.calibration["5"].ece.value, abs=5e-5
        )
        assert [one[0] for one in found["classes"]]


def test_mean_curves_are_means(scores: Scores) -> None:
    for model in scores.models:
        for severity, estimate in zip((1, 3, 5), mean_curves(scores)[model.model], strict=True):
            row = [
                value.value for condition, value in model.conditions.items() if condition.severity == severity
            ]
            assert estimate.value == pytest.approx(sum(row) / len(row), abs=1e-6)
            assert estimate.low < estimate.value < estimate.high


def test_the_published_baseline_has_curves(make: SimpleNamespace, scores: Scores) -> None:
    imagenet = make.scored(make.results_of(["net"], get_suite("imagenet-c"), 20))
    errors = baseline_errors(imagenet)
    assert set(errors) == set(imagenet.suite.corruptions)
    assert errors["fog"][0] == 0.67474
    assert baseline_errors(scores) == {}


def test_sentences_describe_the_shown_rows(make: SimpleNamespace, digits: tuple[Scores, object]) -> None:
    imagenet = make.results_of(["net", "other"], get_suite("imagenet-c"), 20)
    both = Reader(to_html(make.scored(imagenet))).text
    for fact in (
        "from clean images (0) to severity 5",
        "n = 20 images at each point",
        "dotted line is AlexNet",
    ):
        assert fact in both
    averages = Reader(to_html(make.scored(imagenet, baseline="alexnet-paper"))).text
    assert "The dotted line" not in averages  # only averages over severities were printed
    assert "relative to AlexNet" in averages
    plain = replace(make.suite, clean=False)
    assert (
        "Accuracy from severity 1 to severity 5"
        in Reader(to_html(make.scored(make.results_of(["net"], plain, 20)))).text
    )
    single = Reader(to_html(digits[0])).text
    assert "each severity" not in single
    assert "mean over severities" not in single


def test_headlines_say_no_more_than_the_interval(make: SimpleNamespace) -> None:
    scores = make.scored(make.results_of(["net", "worse"], get_suite("imagenet-c"), 60))
    for model in scores.models:
        output, value = headline(scores, model).sentence, model.metrics["mce"]
        assert shows(output, f"{100 * value.value:.0f} %", "error of AlexNet", "15 corruptions")
        assert ("the interval contains 100 %" in output) == (value.low <= 1 <= value.high)
    same = make.scored(make.results_of(["net", "worse"], get_suite("imagenet-c"), 60), baseline="net")
    base = next(model for model in same.models if model.model == "net")
    assert "is the baseline" in headline(same, base).sentence


def test_breaking_points(scores: Scores, digits: tuple[Scores, object]) -> None:
    for model in scores.models:
        half = model.clean.low / 2  # type: ignore[union-attr]
        points = breaking_points(model)
        assert points is not None
        for name, severity in points.items():
            below = [
                c.severity for c, a in model.conditions.items() if c.corruption == name and a.high < half
            ]
            assert severity == (below[0] if below else None)
    assert breaking_points(digits[0].models[0]) is None
    clean = replace(scores.models[0].clean, value=0.0, low=0.0)  # type: ignore[type-var]
    assert breaking_points(replace(scores.models[0], clean=clean)) is None  # half of nothing is not lost


def test_few_images_a_class_are_no_ground_to_name_it(make: SimpleNamespace, scores: Scores) -> None:
    many = [f"class {i}" for i in range(50)]
    worst = find_worst_classes(make.scored(make.results_of(["net"], make.suite, 50, many)))
    assert worst.by_model == {}
    assert shows(worst.note, "none", "1 image")
    alone = find_worst_classes(make.scored(make.results_of(["net"], make.suite, 9, ["it", "rare"])))
    assert shows(alone.note, "one class", "1 class", "5 images")
    for found in find_worst_classes(scores).by_model.values():
        values = [one.corrupted.value for one in found]
        assert values == sorted(values)
        assert {one.n for one in found} == {15}
        assert all(one.corrupted.low <= one.corrupted.value <= one.corrupted.high for one in found)


def test_no_folder_of_anybody_is_shown(scores: Scores) -> None:
    page = to_html(scores)
    assert "/home/someone" not in page
    assert "/srv" not in page
    facts = {fact.name: fact.values for fact in provenance_facts(scores)}
    assert facts["Commands"] == ("beaufort run --data photos --store=out",)
    assert facts["Incomplete models"] == ("unfinished lacks 9 conditions",)
    assert facts["Predictions computed"] == ("2026-01-02 03:04 UTC",)
    assert any(scores.suite.digest in value for value in facts["Suite"])


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        (r"C:\Users\me\net.onnx", "net.onnx"),
        (r"\\server\share\me\net.onnx", "net.onnx"),
        ("torch:/home/me/net.pt", "torch:net.pt"),
        ("--out=~/secret/x", "--out=x"),
        ("file:///home/me/store", "store"),
        ("s3://key:secret@bucket/store", "s3://bucket/store"),
        ("data/val", "data/val"),
        ("mean=0.5,0.5", "mean=0.5,0.5"),
        ("/", "/"),
    ],
)
def test_words_of_a_command(word: str, shown: str) -> None:
    assert without_folders(word) == shown


def test_one_model_and_one_severity(digits: tuple[Scores, object], alone: Scores) -> None:
    scores, data = digits
    page = Reader(to_html(scores, examples=examples_of_data(scores, data)))  # type: ignore[arg-type]
    assert "curves" not in page.ids
    assert shows(page.text, "15 corruptions", "one severity", "16 conditions")
    single = Reader(to_html(alone))
    assert "model" not in single.ids
    assert "Ranking" not in single.text


def test_images_stay_under_the_limit(
    make: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("beaufort.report.examples.ALL_BYTES", 60_000)
    data = make.dataset(side=32)
    make.fill(tmp_path / "store", data)
    from beaufort.results import open_results

    scores = make.scored(open_results(str(tmp_path / "store")))
    examples = examples_of_data(scores, data)
    assert examples.mistakes is not None
    assert list(examples.mistakes) == ["good"]
    assert sum(map(len, examples.images)) < 80_000
    page = write_report(scores, tmp_path / "report.html", examples=examples)
    assert page.stat().st_size < 300_000


def test_page_is_written_completely_or_not_at_all(
    scores: Scores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "new" / "report.html"
    target.parent.mkdir()
    target.write_text("old")
    with pytest.raises(OptionError, match=r"output .*a file"):
        write_report(scores, target.parent)
    monkeypatch.setattr("beaufort.report.formats.MOST_BYTES", 1000)
    with pytest.raises(OptionError, match="--model"):
        write_report(scores, target)
    assert target.read_text() == "old"
    monkeypatch.undo()
    assert (
        write_report(scores, target, title="Mine").read_text(encoding="utf-8").startswith("<!doctype html>")
    )
    assert [path.name for path in target.parent.iterdir()] == ["report.html"]


@pytest.mark.xdist_group("browser")  # where the page is made
def test_a_hundred_models_are_one_small_page(large_file: Path) -> None:
    assert large_file.stat().st_size < 4_000_000


def test_an_infinite_loss_is_shown_as_such(scores: Scores) -> None:
    """A true class of probability 0 has one, and JSON has no word for it."""
    model = scores.models[0]
    calibration = {name: replace(one, nll=None) for name, one in model.calibration.items()}
    page = to_html(replace(scores, models=(replace(model, calibration=calibration), *scores.models[1:])))
    facts = next(json.loads(script) for script in Reader(page).scripts if script.lstrip().startswith("{"))
    assert {one["nll"] for one in facts["models"][0]["calibration"].values()} == {None}


def test_secrets_of_old_records_are_not_shown() -> None:
    """Stores of earlier versions contain the command as typed."""
    words = [
        "beaufort",
        "run",
        "--model",
        "http://h/c?key=SECRET",
        "--set",
        "token=HIDDEN",
        "--store=s3://a:SECRET@b",
    ]
    assert _command(words) == "beaufort run --model http://h/c --set token=… --store=s3://b".replace(
        "token=…", "'token=…'"
    )


def test_arrays_of_cifar10_have_the_names_of_its_classes(make: SimpleNamespace) -> None:
    results = make.results_of(["net"], get_suite("cifar10-c"), 60)
    unnamed = replace(results, classes=())
    data = json.loads(Reader(to_html(make.scored(unnamed))).scripts[0])
    assert "airplane" in data["classes"].values()


def test_two_models_are_compared_from_the_start(make: SimpleNamespace, scores: Scores) -> None:
    two = make.scored(make.results_of(["net", "other"], make.suite, 20))
    assert json.loads(Reader(to_html(two)).scripts[0])["start"] == {"model": 0, "compare": 1}
    assert "start" not in json.loads(Reader(to_html(scores)).scripts[0])
