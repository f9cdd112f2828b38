"""Sets to give away: what is in them, and what cannot be exported."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image, PngImagePlugin
from typer.testing import CliRunner

from beaufort._core.errors import ImageFileError, UnknownNameError
from beaufort._core.text import csv_text
from beaufort.cli import app
from beaufort.data import dataset_kind, load_dataset
from beaufort.data.labels import label_maps
from beaufort.mining import (
    CompositeGenerator,
    MinedSelection,
    MiningError,
    PlanItem,
    export_set,
    generate,
    make_plan,
    open_generated,
    open_set,
    predict_set,
    select,
    write_review_list,
    write_selection_report,
)
from beaufort.mining.review import Review, ReviewRules, create_review, invite, open_review
from beaufort.models import as_model
from tests.commands import shows
from tests.mining.world import WIDE_LABELS, bold, judge, make_cutouts, middle


@pytest.fixture
def selection(images: Path, tmp_path: Path) -> MinedSelection:
    data, made = open_generated(images)
    found = select(predict_set([bold(), middle()], data, tmp_path / "store"), made, ["bold", "middle"])
    write_selection_report(found, tmp_path / "selection")
    return found


@pytest.fixture
def chosen(selection: MinedSelection, tmp_path: Path) -> Path:
    return tmp_path / "selection" / "selection.csv"


def reviewed(selection: MinedSelection, images: Path, tmp_path: Path, reject: str) -> Review:
    write_review_list(selection, images / "kept.csv", controls=4)
    create_review(tmp_path / "r.review", images / "kept.csv", rules=ReviewRules(votes=2))
    review = open_review(tmp_path / "r.review")
    judge(review, ("ann", "bob"), reject)
    return review


def test_set_contains_accepted_images(
    selection: MinedSelection, chosen: Path, images: Path, tmp_path: Path
) -> None:
    review = reviewed(selection, images, tmp_path, "leaf")
    out = tmp_path / "set"
    count = export_set(
        out,
        images,
        chosen,
        review=review,
        labels=WIDE_LABELS,
        title="Cups",
        license_text="CC0",
        reviewed_by="students",
    )
    kept = [one for one, keep in zip(selection.images, selection.kept, strict=True) if keep]
    wanted = {one.item.file for one in kept if one.item.category != "leaf"}
    assert 0 < count == len(wanted) < len(kept)
    data = load_dataset(out)
    assert set(data.ids) == wanted
    assert data.classes == ("cup", "kite", "leaf")  # what has no image left still competes
    assert dataset_kind(out) == "mined"
    for line in (out / "manifest.sha256").read_text().splitlines():
        digest, name = line.split("  ")
        assert sha256((out / name).read_bytes()).hexdigest() == digest
    rows = {row["file_name"]: row for row in pq.read_table(out / "metadata.parquet").to_pylist()}
    assert set(rows) == wanted
    by_file = {one.item.file: one for one in kept}
    for file, row in rows.items():
        item = by_file[file].item
        assert (row["prompt"], row["seed"], row["nuisance"]) == (item.prompt, item.seed, item.nuisance)
        assert json.loads(row["generator"])["name"] == "composite"
        assert (row["votes_yes"], row["votes_no"]) == (2, 0)
        assert [one["model"] for one in row["surrogates"]] == ["bold", "middle"]
        assert item.category not in {one["predicted"] for one in row["surrogates"]}
    assert json.loads((out / "categories.json").read_text()) == {"cup": [2, 3], "kite": [1, 4], "leaf": [0]}
    sheet = (out / "DATASHEET.md").read_text()
    for text in (
        "# Cups",
        "CC0",
        "bold, middle",
        "Krippendorff",
        "composite",
        "2 reviewers (students), up to 2 votes for each image",
        "On each image of the set, all 2 failed.",
        "Agreement on the first 2 votes of each image",
        "A photo of a kite",
    ):
        assert text in sheet
    mined = open_set(str(out))
    assert mined.surrogates == ("bold", "middle")
    assert mined.labels == WIDE_LABELS
    assert [one.nuisance for one in mined.images] == [by_file[one].item.nuisance for one in mined.data.ids]
    part = open_set(f"{out}#{mined.images[0].kind}")  # the same models chose a part of it
    assert (part.surrogates, part.labels) == (mined.surrogates, mined.labels)
    assert all(one.nuisance for one in part.images)


def test_datasheet_counts_voters_and_failing_surrogates(
    selection: MinedSelection, images: Path, tmp_path: Path
) -> None:
    loose = select(selection.predictions, selection.images, ["bold", "middle"], rule="1-of-2")
    write_selection_report(loose, tmp_path / "loose")
    write_review_list(loose, images / "loose.csv")
    create_review(tmp_path / "loose.review", images / "loose.csv", rules=ReviewRules(votes=1))
    review = open_review(tmp_path / "loose.review")
    invite(review, "never came")
    judge(review, ("ann",), "leaf")
    export_set(tmp_path / "set", images, tmp_path / "loose" / "selection.csv", review=review)
    sheet = (tmp_path / "set" / "DATASHEET.md").read_text()
    assert shows(sheet, "1 reviewer", "people", "1 vote")
    assert shows(sheet, "Agreement", "first vote")
    assert "at least 1 of the 2" in sheet
    review.close()


def test_killed_export_resumes_and_overwrites_nothing_else(
    chosen: Path, images: Path, tmp_path: Path
) -> None:
    count = export_set(tmp_path / "whole", images, chosen)
    whole = {
        path.relative_to(tmp_path / "whole"): path.read_bytes()
        for path in sorted((tmp_path / "whole").rglob("*"))
        if path.is_file()
    }
    for name in list(whole)[: len(whole) // 2]:
        if name.name != "manifest.sha256":
            (tmp_path / "half" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "half" / name).write_bytes(whole[name])
    assert export_set(tmp_path / "half", images, chosen) == count
    assert {name: (tmp_path / "half" / name).read_bytes() for name in whole} == whole
    for other in ("DATASHEET.md", "notes.txt"):
        (tmp_path / other).mkdir()
        (tmp_path / other / other).write_text("mine")
        with pytest.raises(MiningError, match=f"{other}"):
            export_set(tmp_path / other, images, chosen)
        assert [path.read_text() for path in (tmp_path / other).iterdir()] == ["mine"]
    with pytest.raises(MiningError, match="output must be a directory"):
        export_set(tmp_path / "notes.txt" / "notes.txt", images, chosen)


def test_both_layouts_hold_the_same_images(
    selection: MinedSelection, chosen: Path, images: Path, tmp_path: Path
) -> None:
    count = export_set(tmp_path / "a", images, chosen)
    assert export_set(tmp_path / "b", images, chosen, layout="image-folder") == count
    first, second = (load_dataset(tmp_path / name) for name in "ab")
    assert {
        Path(one).name: first.classes[label] for one, label in zip(first.ids, first.labels, strict=True)
    } == {Path(one).name: second.classes[label] for one, label in zip(second.ids, second.labels, strict=True)}
    assert all(one.count("/") == 1 for one in second.ids)
    assert first.classes == second.classes == ("cup", "kite", "leaf")
    assert {image.kind for image in open_set(str(tmp_path / "b")).images} <= {
        "background",
        "texture",
        "material",
    }
    assert "not reviewed" in (tmp_path / "a" / "DATASHEET.md").read_text()
    texture = load_dataset(f"mined:{tmp_path / 'a'}#texture")
    assert set(texture.ids) == {one for one in first.ids if one.startswith("texture/")}
    with pytest.raises(ImageFileError, match="'weather' not found"):
        load_dataset(f"mined:{tmp_path / 'a'}#weather")
    with pytest.raises(UnknownNameError, match="'zip'"):
        export_set(tmp_path / "c", images, chosen, layout="zip")
    with pytest.raises(MiningError, match="new or empty folder"):
        export_set(tmp_path / "a", images, chosen)


def test_metadata_that_are_others(chosen: Path, images: Path, tmp_path: Path) -> None:
    export_set(tmp_path / "set", images, chosen)
    path = tmp_path / "set" / "metadata.parquet"
    table = pq.read_table(path)
    without = table.drop_columns(["surrogates"])
    empty = without.append_column("surrogates", pa.nulls(len(table)))
    for other in (without, empty):
        pq.write_table(other, path)
        with pytest.raises(MiningError, match=r"metadata.*`beaufort mine export`"):
            open_set(str(tmp_path / "set"))
    path.write_bytes(b"PAR1")
    with pytest.raises(MiningError, match=r"metadata.*`beaufort mine export`"):
        open_set(str(tmp_path / "set"))


def test_metadata_of_earlier_versions(chosen: Path, images: Path, tmp_path: Path) -> None:
    export_set(tmp_path / "set", images, chosen)
    now = open_set(str(tmp_path / "set"))
    path = tmp_path / "set" / "metadata.parquet"
    table = pq.read_table(path)
    rows: Any = table["surrogates"].to_pylist()
    maps = [[(one["model"], one["predicted"]) for one in row] for row in rows]
    kind = pa.map_(pa.string(), pa.string())
    table = table.drop_columns(["surrogates"]).append_column("surrogates", pa.array(maps, kind))
    pq.write_table(table.rename_columns({"file_name": "file"}), path)
    before = open_set(str(tmp_path / "set"))
    assert (before.images, before.surrogates) == (now.images, now.surrogates)


def test_hugging_face_loads_a_set(chosen: Path, images: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    export_set(tmp_path / "set", images, chosen, labels=WIDE_LABELS)
    loaded = datasets.load_dataset(
        "imagefolder", data_dir=str(tmp_path / "set"), split="train", cache_dir=str(tmp_path / "cache")
    )
    mined = open_set(str(tmp_path / "set"))
    assert len(loaded) == len(mined.data)
    rows = {row["id"]: row for row in loaded}
    for place, id in enumerate(mined.data.ids):
        row = rows[Path(id).stem]
        assert row["category"] == mined.data.classes[mined.data.labels[place]]
        assert row["nuisance"] == mined.images[place].nuisance
        assert (np.asarray(row["image"]) == mined.data[place].image).all()


def test_omitted_images_are_counted_in_the_datasheet(chosen: Path, images: Path, tmp_path: Path) -> None:
    with (images / "index.jsonl").open("a") as file:
        file.write('\n{"id": "1", "omitted": "safety checker"}\n{"id": "2", "omitted": "safety checker"}')
    export_set(tmp_path / "set", images, chosen)
    assert "omitted (safety checker): 2 images" in (tmp_path / "set" / "DATASHEET.md").read_text()


def test_a_category_may_be_called_as_a_kind_is(tmp_path: Path) -> None:
    cutouts = make_cutouts(tmp_path / "cutouts")
    (cutouts / "leaf").rename(cutouts / "texture")
    made = tmp_path / "made"
    generate(make_plan(["cup", "texture"]), CompositeGenerator(cutouts, size=32), made)
    data, all_made = open_generated(made)
    blind = as_model(
        lambda x: np.eye(2, dtype=np.float32)[np.zeros(len(x), np.int64)], name="blind", classes=data.classes
    )
    chosen = select(predict_set([blind], data, tmp_path / "store"), all_made, ["blind"])
    write_selection_report(chosen, tmp_path / "selection")
    for layout in ("imagenet-d", "image-folder"):
        count = export_set(tmp_path / layout, made, tmp_path / "selection" / "selection.csv", layout=layout)
        opened = load_dataset(tmp_path / layout)
        assert opened.classes == ("cup", "texture")
        assert opened.labels.tolist() == [1] * count


def test_a_set_of_imagenet_d_s_categories_is_read_as_one(tmp_path: Path) -> None:
    """The published layout: three folders, 113 categories."""
    for kind in ("background", "material", "texture"):
        for item in make_plan(["chair", "tv"], nuisances={kind: ["a"]}):
            (tmp_path / item.file).parent.mkdir(parents=True)
            Image.new("RGB", (8, 8)).save(tmp_path / item.file)
    published, mined = load_dataset(f"imagenet-d:{tmp_path}"), load_dataset(f"mined:{tmp_path}")
    assert list(published.ids) == list(mined.ids)
    assert published.classes == label_maps["imagenet-d"].classes
    assert mined.classes == ("chair", "tv")


def test_images_that_vanish_or_change(
    selection: MinedSelection, chosen: Path, images: Path, tmp_path: Path
) -> None:
    lost = next(one.path for one, keep in zip(selection.images, selection.kept, strict=True) if keep)
    content = lost.read_bytes()
    lost.unlink()
    with pytest.raises(MiningError, match=rf"image not found: .*{lost.name}"):
        export_set(tmp_path / "set", images, chosen)
    Image.new("RGB", (32, 32)).save(lost)
    with pytest.raises(MiningError, match="changed after the selection"):
        export_set(tmp_path / "set", images, chosen)
    assert not (tmp_path / "set").exists()
    lost.write_bytes(content)
    export_set(tmp_path / "set", images, chosen)
    file = lost.relative_to(images)
    (tmp_path / "set" / file).unlink()
    with pytest.raises(ImageFileError, match=rf"1.*\d+.*first.*'{file}'"):
        load_dataset(tmp_path / "set")


def test_unknown_categories(selection: MinedSelection, chosen: Path, images: Path, tmp_path: Path) -> None:
    with pytest.raises(MiningError, match=r"3.*'cup'\)"):
        export_set(tmp_path / "set", images, chosen, labels=label_maps["imagenet-d"].grouping)
    assert not (tmp_path / "set").exists()


def test_a_review_that_is_not_done(
    selection: MinedSelection, chosen: Path, images: Path, tmp_path: Path
) -> None:
    write_review_list(selection, images / "kept.csv")
    create_review(tmp_path / "r.review", images / "kept.csv", rules=ReviewRules(votes=2))
    review = open_review(tmp_path / "r.review")
    with pytest.raises(MiningError, match=r"\d+ images.* open or tied"):
        export_set(tmp_path / "set", images, chosen, review=review)
    with pytest.raises(MiningError, match=r"no image.* accepted"):
        export_set(tmp_path / "set", images, chosen, review=review, decided_only=True)


def test_a_review_of_something_else(
    selection: MinedSelection, chosen: Path, images: Path, tmp_path: Path
) -> None:
    rows = (images / "other.csv", tmp_path / "r.review")
    first = next(one.item for one, keep in zip(selection.images, selection.kept, strict=True) if keep)
    rows[0].write_text(f"file,category\n{first.file},spoon\n")
    create_review(rows[1], rows[0], rules=ReviewRules(votes=1))
    review = open_review(rows[1])
    judge(review, ("ann",), "")
    with pytest.raises(MiningError, match=rf"{first.file}.*'spoon'.*'{first.category}'"):
        export_set(tmp_path / "set", images, chosen, review=review)
    with pytest.raises(MiningError, match=r"review.* images in"):
        export_set(tmp_path / "set", tmp_path, chosen, review=review)


def test_a_review_of_images_that_were_made_anew(
    selection: MinedSelection, chosen: Path, images: Path, tmp_path: Path
) -> None:
    """Another generator gives the same rows of the plan the same names."""
    review = reviewed(selection, images, tmp_path, reject="cup")
    for one in selection.images:
        one.path.unlink()
    plan = [one.item for one in selection.images]
    generate(plan, CompositeGenerator(make_cutouts(tmp_path / "cutouts"), size=32, fill=0.6), images)
    data, made = open_generated(images)
    again = select(predict_set([bold(), middle()], data, tmp_path / "store"), made, ["bold", "middle"])
    write_selection_report(again, tmp_path / "selection")
    with pytest.raises(MiningError, match=r"changed.* review"):
        export_set(tmp_path / "set", images, chosen, review=review)
    assert not (tmp_path / "set").exists()


@pytest.mark.parametrize("text", ["", "file,category\na,b\n", "nothing at all"])
def test_invalid_selections(tmp_path: Path, text: str) -> None:
    (tmp_path / "selection.csv").write_text(text)
    with pytest.raises(MiningError, match=r"selection\.csv"):
        export_set(tmp_path / "set", tmp_path, tmp_path / "selection.csv")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("surrogates", "[]", r"surrogates.* JSON.* category"),
        ("surrogates", "{}", r"surrogates.* JSON.* category"),
        ("surrogates", '{"bold": 3}', r"surrogates.* JSON.* category"),
        ("surrogates", "[" * 100_000, "surrogates must be JSON"),
        ("surrogates", '{"shy": "cup"}', "different surrogates"),
        ("kept", "7", r"kept .*0 or 1.* '7'"),
        ("file", "a\0b", "invalid file name"),
        ("prompt", "a" * 200_000, "field larger than field limit"),
    ],
)
def test_selections_that_are_damaged(
    chosen: Path, images: Path, tmp_path: Path, column: str, value: str, message: str
) -> None:
    with chosen.open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[-1][column] = value
    chosen.write_text(csv_text(list(rows[-1]), [list(row.values()) for row in rows]))
    with pytest.raises(MiningError, match=message):
        export_set(tmp_path / "set", images, chosen)


def test_a_selection_has_each_image_once(chosen: Path, images: Path, tmp_path: Path) -> None:
    lines = chosen.read_text().splitlines(keepends=True)
    chosen.write_text("".join([*lines, lines[-1]]))
    with pytest.raises(MiningError, match=r".*png. more than once"):
        export_set(tmp_path / "set", images, chosen)


def test_a_selection_cannot_reach_out_of_its_folder(chosen: Path, images: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"x")
    text = chosen.read_text().splitlines()
    kept = next(line for line in text[1:] if ",1,2," in line)
    chosen.write_text("\n".join([text[0], kept.replace(kept.split(",")[0], "../secret.png")]))
    with pytest.raises(MiningError, match=r"'\.\./secret\.png'"):
        export_set(tmp_path / "set", images, chosen)


def test_an_image_cannot_name_a_place_outside_of_the_set(tmp_path: Path) -> None:
    item = PlanItem("../../../outside", "texture", "dotted", "a cup", 1)
    about = PngImagePlugin.PngInfo()
    about.add_itxt("beaufort", json.dumps({"item": asdict(item), "generator": {}}))
    path = tmp_path / "images" / "texture" / "cup" / f"{item.id}.png"
    path.parent.mkdir(parents=True)
    Image.new("RGB", (8, 8)).save(path, pnginfo=about)
    digest = sha256(path.read_bytes()).hexdigest()
    row = [f"texture/cup/{path.name}", digest, item.category, 1, 1, '{"a": "b"}']
    header = ("file", "sha256", "category", "kept", "failures", "surrogates")
    (tmp_path / "selection.csv").write_text(csv_text(header, [row]))
    with pytest.raises(MiningError, match=r"category.* folder"):
        export_set(tmp_path / "a" / "b" / "set", tmp_path / "images", tmp_path / "selection.csv")
    assert not (tmp_path / "a").exists()


def test_category_of_an_image_must_match_its_folder(chosen: Path, images: Path, tmp_path: Path) -> None:
    text = chosen.read_text()
    chosen.write_text(text.replace(",kite,", ",bowl,"))
    with pytest.raises(MiningError, match=r"/kite/.*'bowl'"):
        export_set(tmp_path / "set", images, chosen)


def test_the_command(selection: MinedSelection, chosen: Path, images: Path, tmp_path: Path) -> None:
    def run(*words: Any) -> Any:
        return CliRunner().invoke(app, ["mine", "export", *map(str, words)])

    result = run(images, chosen, tmp_path / "set", "--set", "license=CC0")
    assert result.exit_code == 0, result.output
    assert f"{int(selection.kept.sum())} images written to" in result.output
    assert run(images, chosen, tmp_path / "set").exit_code == 2
