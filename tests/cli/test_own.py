"""Fractional severities, chains and custom packages on the command line."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from beaufort import corrupt, evaluate
from beaufort._core import new_plugin as _new
from beaufort.corruptions import corruptions
from beaufort.data import from_arrays
from beaufort.models import as_model
from beaufort.results import open_results, score
from beaufort.store import FileStore
from beaufort.suites import get_suite
from beaufort.testing._contracts import example_image
from tests.commands import invoke, shows

CHAIN = "fog@2+jpeg_compression@3"
MODEL = """
import numpy as np
from beaufort.models import as_model
from beaufort._core import new_plugin as _new

def toy():
    return as_model(
        lambda images: images.mean(axis=(1, 2)).astype(np.float32), name="toy", classes=3, version="1"
    )
"""
SUITE = """
name: mine
version: 1
dataset: toys
scale: cifar
corruptions: [contrast]
severities: [1, 2.5, 5]
shifts: [fog@2+jpeg_compression@3, contrast@1.5+gaussian_noise@2]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    images = np.stack([np.roll(example_image(32, 32, variant=i), i, axis=-1) for i in range(12)])
    (tmp_path / "toys").mkdir()
    np.save(tmp_path / "toys" / "images.npy", images)
    np.save(tmp_path / "toys" / "labels.npy", np.arange(12) % 3)
    (tmp_path / "ownmodule.py").write_text(MODEL)
    (tmp_path / "mine.yaml").write_text(SUITE)
    return tmp_path


RUN = ("run", "--model", "python:ownmodule:toy", "--data", "toys", "--store", "kept")


def test_a_suite_with_fractions_and_chains(folder: Path) -> None:
    assert "6 conditions" in invoke("validate", "mine.yaml")
    invoke(*RUN, "--suite", "mine.yaml")
    again = invoke(*RUN, "--suite", "mine.yaml", "--json")
    data = json.loads(again)
    assert {one["condition"].partition("/")[2] for one in data["results"]} == {
        *("", "contrast@1", "contrast@2.5", "contrast@5"),
        *(CHAIN, "contrast@1.5+gaussian_noise@2"),
    }
    assert all(one["reused"] for one in data["results"])
    question = "select condition, severity from cells where severity > 2 order by severity"
    rows = invoke("results", "query", question, "--store", "kept")
    assert "contrast@2.5" in rows
    assert CHAIN not in rows
    table = invoke("report", "kept", "--format", "csv")
    assert f"toys/{CHAIN}" in table
    assert ",contrast,2.5,accuracy," in table
    invoke("report", "kept", "-o", "page.html")
    assert "fog@2+jpeg" in (folder / "page.html").read_text().replace(" ", "")
    assert invoke("results", "verify", "kept")


def test_corruptions_of_a_run(folder: Path) -> None:
    data = json.loads(invoke(*RUN, "--corruption", f"{CHAIN},contrast", "--severity", "2.5", "--json"))
    assert [one["condition"].partition("/")[2] for one in data["results"]] == ["", "contrast@2.5", CHAIN]
    data = json.loads(invoke(*RUN, "--corruption", CHAIN, "--json"))
    assert [one["condition"].partition("/")[2] for one in data["results"]] == ["", CHAIN]
    says = invoke(*RUN, "--corruption", CHAIN, "--severity", "3", code=2)
    assert shows(says, "--severity 3", CHAIN)
    says = invoke(*RUN, "--corruption", "fog", "--severity", "5.5", code=2)
    assert "got '5.5'" in says
    says = invoke(*RUN, "--corruption", "fog@2+snwo@1", code=2)
    assert "'fog@2+snwo@1'" in says


def test_predictions_are_for_the_pixels_of_the_condition() -> None:
    """The images under a chain are those of the chain."""
    shown: list[np.ndarray] = []

    def look(images: np.ndarray) -> np.ndarray:
        shown.append(images.copy())
        return np.zeros((len(images), 3), np.float32) + np.arange(3, dtype=np.float32)

    photos = np.stack([example_image(32, 32, variant=i) for i in range(3)])
    data = from_arrays("toys", photos, np.arange(3))
    model = as_model(look, name="look", classes=3, version="1")
    evaluation = evaluate(model, ["gaussian_noise@1.5+contrast@2"], data, seed=3)
    assert [str(one.condition) for one in evaluation.results][1].endswith("/gaussian_noise@1.5+contrast@2")
    expected = [
        corrupt(photo, "gaussian_noise@1.5+contrast@2", image_id=f"test/{i}", seed=3)
        for i, photo in enumerate(photos)
    ]
    assert any(np.array_equal(batch, np.stack(expected)) for batch in shown)


def test_a_chain_of_a_store_is_found_again(folder: Path) -> None:
    invoke(*RUN, "--corruption", CHAIN)
    found = score(open_results(FileStore("kept")), calibration=False)
    assert found.suite.shifts == (CHAIN,)
    assert set(found.models[0].corruptions) == {CHAIN}


@pytest.fixture
def photo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    Image.fromarray(example_image(64, 64)).save(tmp_path / "in" / "a.png")
    return tmp_path


def test_corrupt_writes_them(photo: Path) -> None:
    invoke("corrupt", "in", "out", "--corruption", f"contrast,{CHAIN}", "--severity", "2.5,4")
    for path, name, severity in (
        ("contrast/2.5", "contrast", 2.5),
        ("contrast/4", "contrast", 4),
        (CHAIN, CHAIN, None),
    ):
        made = np.asarray(Image.open(photo / "out" / path / "a.png"))
        np.testing.assert_array_equal(made, corrupt(example_image(64, 64), name, severity, image_id="a.png"))
    note = json.loads((photo / "out" / "beaufort.json").read_text())
    assert set(note["corruptions"]) == {"contrast", "fog", "jpeg_compression"}


def test_make_writes_chains_where_a_severity_has_a_folder(photo: Path, folder: Path) -> None:
    invoke("make", "tiny-imagenet-c", "in", "tiny", "--corruption", CHAIN)
    assert (photo / "tiny" / CHAIN / "a.JPEG").is_file() or any((photo / "tiny" / CHAIN).iterdir())
    says = invoke("make", "cifar10-c", "toys", "cifar", "--corruption", CHAIN, code=2)
    assert shows(says, "cifar10-c", f"'{CHAIN}'")


def test_a_new_package_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps of the documentation, without pip: import, list, test and use a package."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(corruptions, "_things", dict(corruptions))
    output = invoke("new", "corruption", "street_dust")
    assert output.splitlines() == [
        *(f"street_dust/{name}" for name in ("pyproject.toml", "README.md", "street_dust.py")),
        "street_dust/test_street_dust.py",
        "next: cd street_dust && pip install -e '.[test]' && pytest",
    ]
    monkeypatch.syspath_prepend("street_dust")
    try:
        tests = importlib.import_module("test_street_dust")
        for contract in tests.CORRUPTION_CONTRACTS:
            tests.test_contract(contract)
        tests.test_patch_has_the_right_size()
        assert "street_dust" in invoke("ls", "corruptions")
    finally:
        for module in ("street_dust", "test_street_dust"):
            sys.modules.pop(module, None)
    text = "".join(path.read_text() for path in (tmp_path / "street_dust").glob("*.*"))
    assert "my_corruption" not in text
    assert "my-corruption" not in text


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("fog", "the name 'fog' is already used"),
        ("weather", "the name 'weather' is already used"),  # a list of corruptions
        ("rotate_frames", "the name 'rotate_frames' is already used"),  # a shift
        ("np", "the name 'np' is already used"),  # a word of the template
        ("json", "a module called 'json' is already installed"),
        ("Fog", "'Fog'"),
        ("../x", "'../x'"),
        ("class", "'class'"),
    ],
)
def test_invalid_names_are_rejected(
    name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in invoke("new", "corruption", name, code=2).replace("\n", " ")
    assert not list(tmp_path.iterdir())


def test_no_name_breaks_the_template() -> None:
    """A name that the template binds is rejected as the name of a corruption, or shadows nothing."""
    bound: set[str] = set()
    for template in ("module.py.txt", "test_module.py.txt"):
        tree = ast.parse((_new._TEMPLATE / template).read_text(encoding="utf-8"))
        bound |= {alias.asname or alias.name for node in tree.body for alias in getattr(node, "names", ())}
        tests = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        bound |= {node.name for node in tests}
        bound |= {one.arg for node in tests if node.name.startswith("test_") for one in node.args.args}
    usable = {name for name in bound if _new._NAME.fullmatch(name) and not name.startswith("test_")}
    assert usable - {"my_corruption", "pytest"} == _new._OF_TEMPLATES


def test_nothing_is_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    invoke("new", "corruption", "street_dust", "mine")
    says = invoke("new", "corruption", "street_dust", "mine", code=2)
    assert "mine is not empty" in says


def test_published_suites_are_unchanged() -> None:
    """Severities and shifts have more forms now; the digests of the published suites have not changed."""
    assert str(get_suite("imagenet-c")) == "imagenet-c@1"
    assert str(get_suite("testbed-pgd")) == "testbed-pgd@1"
