"""From a name or a file to a suite."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from pathlib import Path

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import Registry, unknown
from beaufort.suites._check import find_mistakes, key_of
from beaufort.suites._mistakes import Mistake, SuiteError
from beaufort.suites._suite import Suite

SUITE_NAMES = (
    "imagenet-c",
    "imagenet-c-validation",
    "tiny-imagenet-c",
    "cifar10-c",
    "cifar100-c",
    "mnist-c",
    "mnist-c-extra",
    "imagenet-c-bar",
    "imagenet-c-and-bar",
    "cifar10-c-bar",
    "cifar10-c-and-bar",
    "imagenet-p",
    "tiny-imagenet-p",
    "cifar10-p",
    "testbed-pgd",
    "photos",
)
"""The suites that are files of the package, `data/<name>.yaml`."""

own_suites: Registry[Suite] = Registry("suite")
"""Suites of other packages, by name."""
SHIFT_SUITE_NAMES = (
    "imagenetv2-matched-frequency",
    "imagenetv2-threshold-0.7",
    "imagenetv2-top-images",
    "imagenet-a",
    "imagenet-r",
    "imagenet-sketch",
    "objectnet",
    "objectnet-2020",
    "imagenet-d",
    "imagenet-d-113",
    "vid-robust",
    "ytbb-robust",
    "stylized-imagenet",
    "icons-50-style",
    "icons-50-subtype",
    "icons-50-subtype-released",
    "icons-50-traditional",
    "icons-50-traditional-released",
)
"""Natural shifts, each with its clean counterpart, and images that a protocol holds out from training; files
of the package, too, `data/shifts/<name>.yaml`."""

_TEXT = re.compile(r"([^@]+)(?:@([1-9][0-9]{0,8}))?")


def get_suite(name: str | Path) -> Suite:
    """The suite of a name, `imagenet-c` or `imagenet-c@1`, or of a file, `my.yaml`.

    >>> get_suite("mnist-c").baseline
    'conv1'
    >>> get_suite("mnistc")
    Traceback (most recent call last):
    beaufort.UnknownNameError: unknown suite 'mnistc'; did you mean 'mnist-c' or 'mnist-c-extra'? \
One of your own is a file whose name ends in .yaml
    """
    if isinstance(name, Path) or (isinstance(name, str) and _is_path(name)):
        return read_suite(name)
    match = _TEXT.fullmatch(name) if isinstance(name, str) else None
    names = (*SUITE_NAMES, *SHIFT_SUITE_NAMES, *own_suites)
    if match is None or match[1] not in names:
        miss = unknown("suite", name, dict.fromkeys(names))
        end = " " if miss.endswith("?") else ". "
        raise UnknownNameError(f"{miss}{end}One of your own is a file whose name ends in .yaml")
    suite = own_suites[match[1]] if match[1] in own_suites else _published(match[1])
    if match[2] is not None and int(match[2]) != suite.version:
        raise UnknownNameError(f"unknown suite {name!r}; this version of Beaufort has '{suite}'")
    return suite


def register_suite(suite: Suite) -> Suite:
    """Let a suite of your own be had by its name, as `--suite` and in `get_suite`."""
    if suite.name in (*SUITE_NAMES, *SHIFT_SUITE_NAMES):
        raise OptionError(f"the name of a suite must not be a published one, got {suite.name!r}")
    own_suites.register(suite.name, suite)
    return suite


def _is_path(text: str) -> bool:
    return text.lower().endswith((".yaml", ".yml")) or "/" in text or "\\" in text


@cache
def _published(name: str) -> Suite:
    folder = files("beaufort.suites") / "data"
    folder = folder / "shifts" if name in SHIFT_SUITE_NAMES else folder
    content = (folder / f"{name}.yaml").read_bytes()
    return _build(content, f"{name}.yaml", taken=())


def read_suite(path: str | Path) -> Suite:
    """The suite that a file holds; a `SuiteError` tells all its mistakes, each with its line."""
    file = Path(path)
    if not file.is_file():
        why = "is not a file" if file.exists() else "does not exist"
        raise OptionError(f"the suite {file} {why}; give a YAML file, such as my.yaml")
    try:
        with file.open("rb") as stream:
            content = stream.read(_most_bytes() + 1)
    except OSError as error:
        raise OptionError(f"the suite {file} cannot be read: {error.strerror or error}") from None
    return parse_suite(content, source=str(path))


def parse_suite(content: str | bytes, *, source: str = "suite") -> Suite:
    """The suite that a text holds.

    Args:
        content: YAML.
        source: what mistakes call the text, the name of its file say.
    """
    return _build(
        content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content,
        source,
        taken=(*SUITE_NAMES, *SHIFT_SUITE_NAMES),
    )


def _most_bytes() -> int:
    from beaufort.suites._yaml import MAX_BYTES

    return MAX_BYTES


def _build(content: bytes, source: str, *, taken: tuple[str, ...]) -> Suite:
    from beaufort.suites._yaml import read_yaml  # PyYAML is loaded when a suite is first read

    document = read_yaml(content)
    values = document.values
    mistakes = list(document.mistakes)
    if values is not None:
        mistakes += [
            Mistake(document.line(where), key_of(where), text) for where, text in find_mistakes(values)
        ]
        if isinstance(name := values.get("name"), str) and name in taken:
            text = f"{name!r} is a suite of Beaufort's own; pick another name for yours"
            mistakes.append(Mistake(document.line(("name",)), "name", text))
    if mistakes or values is None:
        raise SuiteError(source, mistakes)
    return Suite.from_dict(values)
