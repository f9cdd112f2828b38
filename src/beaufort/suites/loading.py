"""Suites by name, from a file, or from names of corruptions."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from beaufort._core.errors import OptionError, UnknownNameError
from beaufort._core.registry import Registry, unknown_message
from beaufort._core.validation import validate_file
from beaufort.corruptions import SEVERITIES, Chain, Severity, expand_names, is_chain
from beaufort.data import Step
from beaufort.suites._schema import Where, find_mistakes, key_of
from beaufort.suites.streams import NAME as STREAM
from beaufort.suites.streams import stream_texts
from beaufort.suites.suite import Mistake, Suite, SuiteError

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
    "testbed-in-memory",
    "imagenet-3dcc",
    "robustbench-imagenet-c",
    "robustbench-imagenet-3dcc",
    "photos",
    "cifar10-c-episodic",
    "cifar10-c-continual",
    "cifar10-c-recurring",
    "cifar10-c-gradual",
    "cifar10-c-mixed",
    "cifar10-c-correlated",
    "cifar10-c-drifting",
    "imagenet-c-continual",
)
"""Suites in the package, `data/<name>.yaml`."""

SHIFT_SUITE_NAMES = (
    "imagenetv2-matched-frequency",
    "imagenetv2-threshold-0.7",
    "imagenetv2-top-images",
    "imagenetv2-one-eighth",
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
    "imagenet-x",
    "icons-50-style",
    "icons-50-subtype",
    "icons-50-subtype-released",
    "icons-50-traditional",
    "icons-50-traditional-released",
)
"""Natural shifts, each with its clean counterpart, and images that a protocol holds out from training:
`data/shifts/<name>.yaml`."""

registered_suites: Registry[Suite] = Registry("suite")
"""Suites of plug-ins and of `register_suite`, by name."""

_LONGEST_NAME = 60
_TEXT = re.compile(r"([^@]+)(?:@([1-9][0-9]{0,8}))?")


def get_suite(name: str | Path) -> Suite:
    """Return the suite of a name (`imagenet-c`, `imagenet-c@1`) or of a file (`my.yaml`).

    A text such as `stream@cifar/mixed,batch=64,seeds=5` is a suite of streams.

    >>> get_suite("mnist-c").baseline
    'conv1'
    >>> get_suite("mnistc")
    Traceback (most recent call last):
    beaufort.UnknownNameError: unknown suite 'mnistc'; did you mean 'mnist-c' or 'mnist-c-extra'? \
A suite file must end in .yaml
    """
    if isinstance(name, str) and name.startswith(f"{STREAM}@"):
        return suite_from_stream(name)
    if isinstance(name, Path) or (isinstance(name, str) and _is_path(name)):
        return read_suite(name)
    match = _TEXT.fullmatch(name) if isinstance(name, str) else None
    names = (*SUITE_NAMES, *SHIFT_SUITE_NAMES, *registered_suites)
    if match is None or match[1] not in names:
        message = unknown_message("suite", name, names)
        end = "" if message.endswith("?") else "."
        raise UnknownNameError(f"{message}{end} A suite file must end in .yaml")
    suite = registered_suites[match[1]] if match[1] in registered_suites else _published(match[1])
    if match[2] is not None and int(match[2]) != suite.version:
        raise UnknownNameError(f"unknown suite {name!r}; this version of Beaufort has '{suite}'")
    return suite


def register_suite(suite: Suite) -> Suite:
    """Make a suite available by its name, for `--suite` and `get_suite`."""
    if suite.name in (*SUITE_NAMES, *SHIFT_SUITE_NAMES):
        raise OptionError(f"{suite.name!r} is a published suite; use another name")
    registered_suites.register(suite.name, suite)
    return suite


def with_own_name(suite: Suite) -> Suite:
    """Return the suite, named `<name>-changed` if it differs from the published suite of its name.

    >>> str(with_own_name(replace(get_suite("cifar10-c"), corruptions=("fog",))))
    'cifar10-c-changed@1'
    """
    if suite.name not in (*SUITE_NAMES, *SHIFT_SUITE_NAMES):
        return suite
    published = _published(suite.name)
    if suite.version != published.version or bool(suite.parts) != bool(published.parts):
        return suite  # another version has another full name, and a part may have the name of a suite
    same = [published, *([] if published.parts else [published.without_clean()])]
    if suite.digest in [one.digest for one in same]:
        return suite
    return replace(suite, name=f"{suite.name}-changed", title=f"{suite.title}, changed")


def _is_path(text: str) -> bool:
    return text.lower().endswith((".yaml", ".yml")) or "/" in text or "\\" in text


@cache
def _published(name: str) -> Suite:
    folder = files("beaufort.suites") / "data"
    folder = folder / "shifts" if name in SHIFT_SUITE_NAMES else folder
    content = (folder / f"{name}.yaml").read_bytes()
    return _build(content, f"{name}.yaml", taken=())


def read_suite(path: str | Path) -> Suite:
    """Return the suite in a file; a `SuiteError` lists all mistakes, each with its line."""
    from beaufort.suites._yaml import MAX_BYTES

    file = validate_file("suite file", path)
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise OptionError(f"cannot read {file}: {error.strerror or error}") from None
    return parse_suite(content, source=str(path))


def parse_suite(content: str | bytes, *, source: str = "suite") -> Suite:
    """Return the suite that a YAML text describes.

    Args:
        content: YAML.
        source: name of the text in messages about mistakes, such as its file name.
    """
    encoded = content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content
    return _build(encoded, source, taken=(*SUITE_NAMES, *SHIFT_SUITE_NAMES))


def _build(content: bytes, source: str, *, taken: tuple[str, ...]) -> Suite:
    from beaufort.suites._yaml import read_yaml  # PyYAML is loaded when a suite is first read

    values, lines = read_yaml(content, source, published=not taken)
    found = list(find_mistakes(values))
    if (name := values.get("name")) in taken:
        found.append((("name",), f"{name!r} is a published suite; use another name"))
    if found:
        mistakes = [Mistake(_line_of(lines, where), key_of(where), message) for where, message in found]
        raise SuiteError(source, mistakes)
    return Suite.from_dict(values)


def _line_of(lines: Mapping[Where, int], where: Where) -> int:
    """Return the line of a value, or of the nearest thing that contains it."""
    while where not in lines and where:
        where = where[:-1]
    return lines[where]


def suite_from_corruptions(names: Sequence[str], severities: Sequence[Severity] = SEVERITIES) -> Suite:
    """Return a suite of the clean images and each corruption at each severity, without resizing.

    >>> str(suite_from_corruptions(["fog", "snow"], [3]))
    'fog-snow-3@1'
    >>> suite_from_corruptions(["fog@2+jpeg_compression@3"]).shifts
    ('fog@2+jpeg_compression@3',)

    Args:
        names: corruptions, subsets such as `weather`, or chains such as `fog@2+jpeg_compression@3`.
        severities: from 1 to 5; chains have their own.
    """
    chains = tuple(dict.fromkeys(str(Chain.parse(name)) for name in names if is_chain(name)))
    plain = [name for name in names if not is_chain(name)]
    for name in plain:
        if "@" in name or "/" in name:
            raise OptionError(
                f"a corruption must be a name such as 'fog', got {name!r:.60}; pass severities separately "
                "(`--severity 3`, `suite_from_corruptions(['fog'], [3])`)"
            )
    members = tuple(dict.fromkeys(expand_names(plain, kind="corruption")))
    levels = tuple(sorted(dict.fromkeys(severities))) if plain else ()
    at = f"{', '.join(dict.fromkeys(plain))} at severity {', '.join(map(str, levels))}"
    return Suite(
        name=_suite_name(plain, members, levels, chains),
        version=1,
        dataset="data",
        scale="auto",
        corruptions=members,
        severities=levels,
        shifts=chains,
        title=", ".join([*([at] if plain else []), *chains]),
    )


def suite_from_stream(text: str) -> Suite:
    """Return a suite of one stream, or with `seeds=N` of one for each seed; photos are prepared for ImageNet.

    >>> suite = suite_from_stream("stream@cifar/mixed,batch=64,seeds=5")
    >>> suite.name, len(suite.shifts)
    ('stream-cifar-mixed-batch-64-seeds-5', 5)
    """
    name = re.sub(r"[^A-Za-z0-9._]+", "-", text)
    if len(name) > _LONGEST_NAME:
        name = f"{STREAM}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    texts = stream_texts(text)
    steps = ("resize 256", "crop 224") if texts[0].startswith(f"{STREAM}@imagenet/") else ()
    return Suite(
        name=name,
        version=1,
        dataset="data",
        shifts=tuple(texts),
        clean=False,
        prepare=tuple(map(Step.parse, steps)),
        title=text,
    )


def _suite_name(
    names: Sequence[str], members: Sequence[str], levels: Sequence[Severity], chains: Sequence[str]
) -> str:
    """Return a name made of the names and severities; one that would be too long ends in a digest."""
    steps = [f"{levels[0]}-{levels[-1]}"] if levels == SEVERITIES else map(str, levels)
    made = [chain.replace("@", "").replace("+", ".") for chain in chains]
    whole = "-".join([*dict.fromkeys(names), *steps, *made])
    if len(whole) <= _LONGEST_NAME:
        return whole
    facts = (tuple(members), tuple(levels), *([tuple(chains)] if chains else []))
    digest = hashlib.sha256(repr(facts).encode()).hexdigest()[:8]
    return f"{len(members) + len(chains)}-corruptions-{digest}"
