"""Paths of reference data, and stores filled with generated predictions."""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from typer.main import get_command

from beaufort.evaluation import predictions
from beaufort.metrics import BASELINE_NAMES, get_baseline
from beaufort.models import prepare_torchvision
from beaufort.store import Cell, FileStore
from beaufort.suites import Suite, get_suite

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("BEAUFORT_SHARED", ROOT.parent / "shared"))

# Machines are shared: a slow moment is no finding. The examples are the same in every run, so that a rare one
# does not reject unrelated changes; `--hypothesis-profile search` looks for new ones.
settings.register_profile("search", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("beaufort", settings.get_profile("search"), derandomize=True)
settings.load_profile("beaufort")

if (SHARED / "reference" / "assets").is_dir():
    os.environ.setdefault("BEAUFORT_MIRROR", str(SHARED / "reference" / "assets"))


HEAVY = {"rehearsal", "mnist_c", "icons_50", "enhancements", "mined_digits", "browser", "cluster", "places"}
"""Fixtures that take seconds: rehearsals of studies, a browser, a cluster, jobs that are killed."""


GROUPS = {"bench", "browser", "places"}
"""Fixtures that take seconds and would be made in every process."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests with a heavy fixture as slow, and let those that share one run in one process."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if HEAVY.intersection(fixtures):
            item.add_marker(pytest.mark.slow)
        for name in GROUPS.intersection(fixtures):
            item.add_marker(pytest.mark.xdist_group(name))


@pytest.fixture(autouse=True)
def _same_chance() -> None:
    """Seed the global generators before each test; torch's differs in every process."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture(scope="session", autouse=True)
def _commands_put_together_once() -> Iterator[None]:
    """Cache the commands, which Typer creates again for every call in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory of reference data; tests that need it are skipped if it is missing."""
    if not SHARED.is_dir():
        pytest.skip(f"no reference data at {SHARED}; name its folder in BEAUFORT_SHARED")
    return SHARED


@pytest.fixture(scope="session")
def s3_address() -> Iterator[str]:
    """The address of an S3 server in its own process, with an empty bucket."""
    for name in ("s3fs", "moto"):
        pytest.importorskip(name, reason=f"{name} is not installed")
    from tests.store.s3_server import s3_server

    with s3_server() as address:
        yield address


@pytest.fixture
def s3(s3_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of an unused folder in the bucket."""
    from tests.store.s3_server import BUCKET, environment

    for name, value in environment(s3_address).items():
        monkeypatch.setenv(name, value)
    return f"s3://{BUCKET}/{tmp_path.parent.name}-{tmp_path.name}"


FILES = {
    "frost": [
        f"frost/frost{i}.{kind}" for i, kind in enumerate(["png", "png", "png", "jpg", "jpg"], start=1)
    ],
    "pessimal_noise": ["mnist-c/pessimal_noise_matrix.f32"],
}


@cache
def _missing(corruption: str) -> str:
    from beaufort._core.catalog import fetch
    from beaufort._core.errors import AssetError

    try:
        for name in FILES.get(corruption, []):
            fetch(name)
    except AssetError as error:
        return str(error)
    return ""


@pytest.fixture(autouse=True)
def _files_at_hand(request: pytest.FixtureRequest) -> None:
    """Skip a test of a corruption (its parameter `name`) whose files are unavailable."""
    call = getattr(request.node, "callspec", None)
    name = call.params.get("name") if call else None
    if isinstance(name, str) and (reason := _missing(name)):
        pytest.skip(reason)


CLASSES = 10

Fill = Callable[..., FileStore]


def fill_store(
    path: Path,
    models: dict[str, float],
    *,
    suite: str | Suite = "mnist-c",
    images: int = 300,
    seed: int = 0,
    data: str = "digits",
    record: bool = True,
    skip: int = 0,
    alike: float = 1.0,
    luck: int = 0,
    weights: str = "",
) -> FileStore:
    """Models by their accuracy; a digit is equally hard for all of them.

    Clean digits are easier than corrupted ones. `skip` leaves the last conditions of the last model out;
    another `luck` gives other predictions; other `weights` make other models of these names.
    """
    requested = get_suite(suite) if isinstance(suite, str) else suite
    store = FileStore(path)
    rng = np.random.default_rng(1)
    labels = rng.integers(0, CLASSES, images)
    hardness = rng.random(images)
    rng = np.random.default_rng([2, luck])
    ids = [f"digit/{i}" for i in range(images)]
    facts = {"name": data, "digest": f"digest of {data} {images}"}
    prepare = [*([] if requested.scale == "mnist" else ["rgb"]), *map(str, requested.prepare)]
    for number, (name, skill) in enumerate(models.items()):
        model = {"name": name, "digest": f"sha256:{name}{weights}", "preprocessing": {}}
        conditions = requested.conditions(data)
        if skip and number == len(models) - 1:
            conditions = conditions[:-skip]
        for condition in conditions:
            easier = 0.5 if condition.clean else 1.0
            chance = skill if alike == 0 else np.clip(skill + alike * (0.5 - hardness) * easier, 0, 1)
            right = rng.random(images) < (chance if not condition.clean else np.sqrt(chance))
            output = np.where(right, labels, (labels + 1) % CLASSES)
            logits = rng.normal(0, 1, (images, CLASSES)).astype(np.float32)
            logits[np.arange(images), output] = 4
            about = {**condition.facts(scale=requested.scale, seed=seed), "prepare": prepare}
            store.write(Cell(model, facts, about), 0, predictions(ids, labels, logits), {"command": ["made"]})
    if record:
        about = {"suite": requested.as_dict(), "data": facts, "seed": seed, "models": sorted(models)}
        named = get_baseline(requested.baseline).classes if requested.baseline in BASELINE_NAMES else CLASSES
        classes = [str(label) for label in range(named or CLASSES)]  # a published baseline's own
        store.write_run(about, {"images": images, "classes": classes, "time": "2026"})
    return store


@pytest.fixture
def fill(tmp_path: Path) -> Fill:
    """Fill the store of a name in a folder of the test's own."""
    return lambda name, models, **options: fill_store(tmp_path / name, models, **options)


_LONGEST_WAIT_MS = 300_000
"""For a page, and for what it shows: nobody waits as long unless it never comes."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Chromium, controlled by playwright; tests that need it are skipped if either is missing."""
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed; the extra dev has it"
    )
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("no chromium here; apt-get install chromium")
    with api.sync_playwright() as playwright:
        found = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"], timeout=_LONGEST_WAIT_MS
        )
        yield found
        found.close()


@pytest.fixture
def browse(browser: Any) -> Iterator[Callable[..., Any]]:
    """Open a page; fail if it has errors or makes requests to other hosts."""
    wrong: list[str] = []
    contexts = []

    def opened(url: str, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        context.set_default_timeout(_LONGEST_WAIT_MS)
        page = context.new_page()
        page.on("console", lambda message: wrong.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        start = "/".join(url.split("/")[:3])
        page.on(
            "request",
            lambda requested: (
                None if requested.url.startswith((start, "data:")) else wrong.append(requested.url)
            ),
        )
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong


@pytest.fixture
def show(browse: Callable[..., Any]) -> Callable[..., Any]:
    """Open a file as a page, under the same conditions."""
    return lambda path, **options: browse(path.as_uri(), **options)


@pytest.fixture
def tiny_clip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, Any]:
    """A CLIP of one layer: what `load_model` takes, and the network."""
    torch = pytest.importorskip("torch", reason="torch is not installed; the extra open_clip has it")
    prepare_torchvision()  # before open_clip imports it: its compiled part may not fit the torch that is here
    clip = pytest.importorskip("open_clip", reason="open_clip is not installed; the extra open_clip has it")
    from open_clip import factory

    for registry in ("_MODEL_CONFIGS", "_MODEL_CONFIG_PATHS"):
        monkeypatch.setattr(factory, registry, getattr(factory, registry).copy())
    config = {
        "embed_dim": 16,
        "vision_cfg": {"image_size": 32, "layers": 1, "width": 64, "patch_size": 8},
        "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 16, "heads": 2, "layers": 1},
    }
    (tmp_path / "tiny-clip.json").write_text(json.dumps(config))
    clip.add_model_config(tmp_path / "tiny-clip.json")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = clip.create_model("tiny-clip")
    torch.save(net.state_dict(), tmp_path / "clip.pt")
    return f"open_clip:tiny-clip/{tmp_path}/clip.pt", net.eval()
