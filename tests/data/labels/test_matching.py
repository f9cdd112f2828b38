"""Matching of labels and outputs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaufort.data.labels import (
    DatasetLabels,
    LabelError,
    LabelSpace,
    ModelOutputs,
    class_ids,
    class_key,
    class_names,
    find_label_space,
)

NAMES, IDS = class_names("imagenet-1k"), class_ids("imagenet-1k")


def folders(*names: str) -> DatasetLabels:
    return DatasetLabels("pets", tuple(sorted(names)), np.arange(len(names)), by_name=True)


def numbers(*names: str) -> DatasetLabels:
    return DatasetLabels("pets", names, np.arange(len(names)))


IMAGENET = ModelOutputs("net", 1000)


def outputs_of(space: LabelSpace) -> list[int]:
    assert space.outputs is not None
    return [output for (output,) in space.outputs]


def test_imagenet_has_one_list() -> None:
    assert (len(set(NAMES)), len(set(IDS)), list(IDS)) == (1000, 1000, sorted(IDS))
    found = dict(zip(NAMES, map(class_key, NAMES), strict=True))
    assert found.pop("maillot") == "maillot"  # elsewhere two classes are called so
    assert list(found.values()) == [one for one in IDS if one != "n03710637"]
    assert class_names("cifar-10")[3] == "cat"
    assert class_key("crane") == "crane"  # two classes are called so


@given(st.lists(st.integers(0, 999), min_size=1, max_size=30, unique=True), st.randoms())
def test_folders_of_imagenet(labels: list[int], random: object) -> None:
    forms = (
        lambda i: IDS[i],
        lambda i: NAMES[i].replace(" ", "_"),
        lambda i: NAMES[i].upper() if NAMES[i].isascii() else NAMES[i],
        lambda i: NAMES[i],
    )
    named = {
        IDS[label] if label == 638 else random.choice(forms)(label): label  # type: ignore[attr-defined]
        for label in labels
    }
    for outputs in (
        IMAGENET,
        ModelOutputs("net", 1000, label_space="imagenet-1k"),
        ModelOutputs("net", 1000, NAMES),
    ):
        found = find_label_space(folders(*named), outputs)
        assert outputs_of(found) == [named[name] for name in sorted(named)]
        assert found.convention == "restricted"


def test_all_of_imagenet_is_identity() -> None:
    assert find_label_space(folders(*IDS), IMAGENET).identity


def test_names_that_match_nothing_are_rejected() -> None:
    says = r"2 of 3 classes of pets match no class of 'imagenet-1k', .* \(first: 'kitten'\); use WordNet ids"
    with pytest.raises(LabelError, match=says):
        find_label_space(
            folders("tench", "kitten", "puppy"), ModelOutputs("net", 1000, label_space="imagenet-1k")
        )
    with pytest.raises(LabelError, match="with 1000 outputs of net"):
        find_label_space(folders("tench", "kitten", "puppy"), IMAGENET)
    with pytest.raises(LabelError, match="crane"):
        find_label_space(folders("crane"), ModelOutputs("net", 1000, label_space="imagenet-1k"))
    assert find_label_space(folders("a", "b"), IMAGENET, labels="identity").identity


def test_misspelled_names_of_a_known_list_are_rejected() -> None:
    """With `car`, the sorted order differs from that of the classes: bird would be automobile."""
    ten = ModelOutputs("net", 10, suite_space="cifar-10")
    cifar = class_names("cifar-10")
    assert find_label_space(folders(*cifar), ten).identity
    with pytest.raises(LabelError, match=r"1.*10.*'cifar-10'.*'car'"):
        find_label_space(folders(*(name.replace("automobile", "car") for name in cifar)), ten)
    assert find_label_space(folders(*(name.replace("ship", "shipp") for name in cifar)), ten).identity
    assert find_label_space(folders(*"abcdefghi", "cat"), ten).identity  # classes of one's own
    with pytest.raises(LabelError, match=r"1.*3.*'crane'"):
        find_label_space(folders("crane", "tench", "goldfish"), IMAGENET)
    odd = [*NAMES[:-1], "toilet roll"]  # 1,000 folders in the order of the alphabet
    with pytest.raises(LabelError, match=r"1000.*'imagenet-1k'"):
        find_label_space(folders(*odd), IMAGENET)
    assert find_label_space(folders(*IDS[:-1], "n99999999"), IMAGENET).identity


def test_digits_in_words_are_taken_by_name() -> None:
    """Sorted by name, they begin with eight, five and four, which are not outputs 0, 1 and 2."""
    words = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    right = [8, 5, 4, 9, 1, 7, 6, 3, 2, 0]
    for known in (
        ModelOutputs("net", 10, suite_space="mnist"),
        ModelOutputs("net", 10, label_space="mnist"),
        ModelOutputs("net", 10, tuple("0123456789")),
        ModelOutputs("net", 10, words),
    ):
        assert outputs_of(find_label_space(folders(*words), known)) == right
    assert outputs_of(
        find_label_space(folders("Nine", "two"), ModelOutputs("net", 10, label_space="mnist"))
    ) == [
        9,
        2,
    ]
    assert outputs_of(find_label_space(folders("2", "9"), ModelOutputs("net", 10, words))) == [2, 9]
    assert find_label_space(numbers(*words), ModelOutputs("net", 10, suite_space="mnist")).identity
    with pytest.raises(LabelError, match=r"10.*'eight'\).*10"):
        find_label_space(folders(*words), ModelOutputs("net", 10))
    with pytest.raises(LabelError, match="2 classes"):
        find_label_space(folders("three", "two"), ModelOutputs("net", 2))


def test_own_names() -> None:
    outputs = ModelOutputs("net", 3, ("Fox", "guinea pig", "cat"))
    assert outputs_of(find_label_space(folders("cat", "Guinea_Pig"), outputs)) == [1, 2]
    assert outputs_of(find_label_space(folders("cat", "fox", "guinea pig"), outputs)) == [2, 0, 1]
    assert outputs_of(find_label_space(numbers("cat", "fox", "guinea pig"), outputs)) == [2, 0, 1]
    assert find_label_space(numbers("fox", "guinea-pig", "cat"), outputs).identity
    with pytest.raises(LabelError, match=r"'cat'.*2.*'the.*net'"):
        find_label_space(numbers("cat", "dog", "hen"), outputs)
    with pytest.raises(LabelError, match=r"'the.*net'"):
        find_label_space(folders("cat", "dog", "hen"), outputs)


def test_as_many_classes_as_outputs_without_names() -> None:
    assert find_label_space(folders("a", "b", "c"), ModelOutputs("net", 3)).identity
    assert find_label_space(
        folders("a", "b", "c"), ModelOutputs("net", 3, ("LABEL_0", "LABEL_1", "LABEL_2"))
    ).identity
    with pytest.raises(LabelError, match="--labels identity"):
        find_label_space(folders("a", "b", "c"), ModelOutputs("net", 4))
    with pytest.raises(LabelError, match="--classes FILE"):
        find_label_space(numbers("a", "b", "c"), ModelOutputs("net", 4))


def test_numbers_are_outputs() -> None:
    plain = DatasetLabels("arrays", tuple(map(str, range(6))), np.array([0, 5]))
    assert find_label_space(plain, IMAGENET).identity
    assert find_label_space(plain, ModelOutputs("net", None)).identity
    gaps = DatasetLabels("list", ("tench", "1", "great white shark"), np.array([0, 2]))
    assert find_label_space(gaps, ModelOutputs("net", 1000, label_space="imagenet-1k")).identity
    with pytest.raises(LabelError, match=r"3.* outputs of net.* 5"):
        find_label_space(plain, ModelOutputs("net", 3))


def test_folders_that_are_numbers() -> None:
    assert find_label_space(folders(*"0123456789"), ModelOutputs("net", 10)).identity
    assert outputs_of(find_label_space(folders("7", "285", "30"), IMAGENET)) == [285, 30, 7]
    twelve = tuple(map(str, range(12)))
    with pytest.raises(LabelError, match=r"numbers.* net"):
        find_label_space(folders(*twelve), ModelOutputs("net", 12))
    named = find_label_space(folders(*twelve), ModelOutputs("net", 12, twelve))
    assert outputs_of(named) == [int(name) for name in sorted(twelve)]
    with pytest.raises(LabelError, match=r"numbers.* net"):
        find_label_space(folders("7", "1000"), IMAGENET)


def test_outputs_named_by_the_suite() -> None:
    cifar = ModelOutputs("net", 10, suite_space="cifar-10")
    assert outputs_of(find_label_space(folders("ship", "cat"), cifar)) == [3, 8]
    with pytest.raises(LabelError, match="cannot match 2 classes"):
        find_label_space(folders("ship", "cat"), ModelOutputs("net", 10))
    assert find_label_space(folders(*"abcdefghij"), cifar).identity  # own classes under the same corruptions


def test_outputs_by_class(tmp_path: Path) -> None:
    file = tmp_path / "pets.json"
    file.write_text(json.dumps({"cat": ["n02123045", "tiger cat", 283], "fish": [0], "hen": []}))
    found = find_label_space(folders("cat", "fish", "hen"), IMAGENET, labels=file, convention="all")
    assert found == LabelSpace(1000, ((281, 282, 283), (0,), ()), "all")
    with pytest.raises(LabelError, match=r"1.*'dog'"):
        find_label_space(folders("cat", "dog"), IMAGENET, labels=file)
    with pytest.raises(LabelError, match=r"1 outputs .*'unicorn'"):
        find_label_space(folders("cat"), IMAGENET, labels={"cat": ["unicorn"]})
    for bad in ("[1]", "{", '{"cat": 3}', "{}"):
        file.write_text(bad)
        with pytest.raises(LabelError, match="labels must be"):
            find_label_space(folders("cat"), IMAGENET, labels=file)


def test_restricted_needs_classes() -> None:
    plain = DatasetLabels("arrays", ("0", "1"), np.array([0, 1]))
    with pytest.raises(LabelError, match="convention 'restricted' requires"):
        find_label_space(plain, IMAGENET, convention="restricted")
    assert find_label_space(plain, ModelOutputs("net", 2), convention="restricted").identity
    with pytest.raises(LabelError, match="1000 outputs, as net, got 5"):
        find_label_space(plain, IMAGENET, labels=LabelSpace(5, ((1,), (2,))))


def test_classes_of_a_space_that_mean_the_same() -> None:
    with pytest.raises(LabelError, match=r"'tench'.*'n01440764'"):
        find_label_space(folders("tench"), IMAGENET, labels={"tench": [0], "n01440764": [5]})


def test_an_output_by_name_and_number_is_one() -> None:
    found = find_label_space(folders("fish"), IMAGENET, labels={"fish": ["tench", 0, 1, 0]})
    assert found.outputs == ((0, 1),)


@pytest.mark.parametrize(
    "labels",
    [
        {"cat": 281},
        {"cat": "tabby"},
        {"cat": [True]},
        {"cat": [281.5]},
        {"cat": {"tabby": 1}},
        {7: [1]},
        [[281]],
    ],
)
def test_invalid_lists_of_outputs(labels: object) -> None:
    with pytest.raises(LabelError, match=r"labels.*'identity'.*JSON"):
        find_label_space(folders("cat"), IMAGENET, labels=labels)  # type: ignore[arg-type]


def test_a_space_must_have_every_class() -> None:
    with pytest.raises(LabelError, match=r"must.*1.*1"):
        find_label_space(folders("cat", "dog"), IMAGENET, labels=LabelSpace(1000, ((281,),), "all"))
