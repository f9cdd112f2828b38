"""Class names in the metadata of ONNX files, in the forms that exporters write."""

from __future__ import annotations

from pathlib import Path

import pytest

import beaufort.models
from beaufort.models import load_model
from beaufort.models.onnx import names_in


@pytest.mark.parametrize(
    "text",
    [
        "{0: 'cat', 1: 'dog'}",
        '{"0": "cat", "1": "dog"}',
        '["cat", "dog"]',
        "('cat', 'dog')",
        "cat, dog",
        "cat\ndog",
    ],
)
def test_forms(text: str) -> None:
    assert names_in({"names": text}, 2) == ("cat", "dog")
    assert names_in({"other": text}, 2) is None
    assert names_in({"classes": text}, 3) is None


@pytest.mark.parametrize(
    "text", ["", "3", "[1, 2]", "{1: 'cat', 2: 'dog'}", "{'a': 'cat'}", "[[]]", "(" * 5000]
)
def test_what_is_no_list_of_names(text: str) -> None:
    assert names_in({"names": text}, 2) is None


def test_a_file_tells_its_classes(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    model = onnx.load(str(Path(beaufort.models.__file__).parent / "data" / "digits.onnx"))
    entry = model.metadata_props.add()
    entry.key, entry.value = "names", str(dict(enumerate("abcdefghij")))
    onnx.save(model, str(tmp_path / "letters.onnx"))
    assert load_model(str(tmp_path / "letters.onnx")).spec.class_names == tuple("abcdefghij")
