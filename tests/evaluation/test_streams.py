"""Evaluation on streams: order, resumption after a kill, refused engines and suites."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from beaufort import OptionError, evaluate
from beaufort._core.errors import ImageFileError
from beaufort.evaluation import Progress
from beaufort.models import Preprocessing, as_model
from beaufort.models.spec import ModelSpec
from beaufort.results import stream_scores
from beaufort.store import FileStore
from beaufort.suites.conditions import Condition

SUITE = "stream@cifar/continual,of=fog+contrast,batch=7,seeds=2"
COUNT = 40


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("beaufort.evaluation.tasks.BLOCK", 14)


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    labels = np.arange(COUNT) % 4
    images = rng.integers(0, 256, (COUNT, 32, 32, 3)) // 2 + 30 * labels[:, None, None, None]
    return images.astype(np.uint8), labels


class Counting:
    """A stateful model whose logits depend on all images since the last reset."""

    def __init__(self) -> None:
        self.spec = ModelSpec(
            name="plain+counting",
            source="test",
            preprocessing=Preprocessing(value_range="0..255", layout="NHWC", dtype="uint8"),
            classes=4,
            weights="declared:1",
        )
        self.calls: list[tuple[int, int]] = []
        self.resets = 0
        self.reset()

    def reset(self) -> None:
        self.total, self.seen = np.zeros(4), 0
        self.resets += 1

    def adapt(self, images: Any) -> Any:
        brightness = images.reshape(len(images), -1).mean(axis=1)
        logits = np.stack([-np.abs(brightness - 60 - 30 * c) for c in range(4)], axis=1) + self.total
        self.calls.append((self.seen, len(images)))
        self.total, self.seen = 0.9 * self.total + logits.mean(axis=0) / 50, self.seen + len(images)
        return logits.astype(np.float32)

    __call__ = adapt

    def state(self) -> dict[str, Any]:
        return {"total": self.total.copy(), "seen": np.array(self.seen)}

    def load_state(self, state: Any) -> None:
        self.total, self.seen = state["total"].copy(), int(state["seen"])


class KilledError(Exception):
    """Simulate a kill: no code after it runs."""


def rows(store: Path) -> dict[str, Any]:
    kept = FileStore(store)
    return {key: kept.read(cell).to_pydict() for key, cell in kept.cells().items()}


def test_batches_come_in_order_and_are_reset_for_each_stream(data: Any) -> None:
    model = Counting()
    evaluate(model, SUITE, data)
    sizes = [7, 7, 7, 7, 7, 5]
    starts = np.cumsum([0, *sizes, *sizes])[:-1].tolist()
    assert model.calls == list(zip(starts, sizes * 2, strict=True)) * 2
    episodic = Counting()
    evaluate(episodic, SUITE.replace("continual", "episodic"), data)
    assert episodic.resets == 1 + 4


@pytest.mark.parametrize("after", [8, 20, 43, 90, 130])
def test_a_killed_run_continues_to_identical_predictions(
    data: Any, tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(Counting(), SUITE, data, tmp_path / "whole")

    def kill(progress: Progress) -> None:
        if progress.done >= after:
            raise KilledError

    with pytest.raises(KilledError):
        evaluate(Counting(), SUITE, data, tmp_path / "killed", progress=kill)
    stored = sum(len(one["id"]) for one in rows(tmp_path / "killed").values())
    again = Counting()
    evaluate(again, SUITE, data, tmp_path / "killed")
    assert sum(size for _, size in again.calls) == 4 * COUNT - stored
    assert rows(tmp_path / "killed") == rows(tmp_path / "whole")
    assert not list((tmp_path / "killed").rglob("*.safetensors"))
    unused = Counting()
    run = evaluate(unused, SUITE, data, tmp_path / "killed")
    assert not unused.calls
    assert run.streams[0].models[0].model == "plain+counting"


def test_without_its_state_a_stream_starts_again(data: Any, tmp_path: Path) -> None:
    evaluate(Counting(), SUITE, data, tmp_path / "whole")

    def kill(progress: Progress) -> None:
        if progress.done >= 35:
            raise KilledError

    for content in (None, b"damaged"):
        store = tmp_path / ("missing" if content is None else "damaged")
        with pytest.raises(KilledError):
            evaluate(Counting(), SUITE, data, store, progress=kill)
        (state,) = store.rglob("*.safetensors")
        state.unlink()
        if content is not None:
            state.write_bytes(content)
        evaluate(Counting(), SUITE, data, store)
        assert rows(store) == rows(tmp_path / "whole")


def test_a_model_without_state_has_the_predictions_of_its_conditions(data: Any, tmp_path: Path) -> None:
    def brightness(images: Any) -> Any:
        return np.stack([-np.abs(images.mean(axis=(1, 2, 3)) - 60 - 30 * c) for c in range(4)], axis=1)

    model = as_model(brightness, version="1", name="plain")
    evaluate(model, SUITE, data, tmp_path / "streams")
    conditions = [Condition.parse(f"data/{name}@5") for name in ("fog", "contrast")]
    evaluate(model, conditions, data, tmp_path / "conditions")
    alone = {}
    for cell in (kept := FileStore(tmp_path / "conditions")).cells().values():
        table = kept.read(cell).to_pydict()
        name = f"{cell.condition['corruption']}@5"
        alone.update({f"{name}/{i}": top for i, top in zip(table["id"], table["top"], strict=True)})
    for table in rows(tmp_path / "streams").values():
        assert [int(id.split("/")[0]) for id in table["id"]] == list(range(2 * COUNT))
        for id, top in zip(table["id"], table["top"], strict=True):
            assert alone[id.split("/", 1)[1]] == top


@pytest.mark.parametrize("engine", ["processes:2", "ray"])
def test_workers_do_not_share_a_stateful_stream(data: Any, tmp_path: Path, engine: str) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    with pytest.raises(OptionError, match="engine local"):
        evaluate(Counting(), SUITE, data, tmp_path, engine=engine)


def test_what_does_not_go_with_streams_is_rejected(data: Any, tmp_path: Path) -> None:
    from beaufort.evaluation import RunOptions

    with pytest.raises(OptionError, match="adapts"):
        evaluate(Counting(), ["fog"], data)
    with pytest.raises(OptionError, match="batch=N"):
        evaluate(Counting(), SUITE, data, options=RunOptions(batch_size=8))
    with pytest.raises(OptionError, match="precision"):
        evaluate(Counting(), SUITE, data, options=RunOptions(precision=5))
    images, labels = data
    np.save(tmp_path / "fog.npy", np.concatenate([images] * 5))
    np.save(tmp_path / "labels.npy", np.tile(labels, 5))
    with pytest.raises(OptionError, match="clean images"):
        evaluate(Counting(), SUITE, f"cifar10-c:{tmp_path}")
    run = evaluate(Counting(), SUITE, (images[:20], labels[:20]), tmp_path)
    with pytest.raises(OptionError, match="streams"):
        run.scores()


def test_a_missing_image_stops_the_stream(tmp_path: Path, data: Any) -> None:
    from PIL import Image

    images, labels = data
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        (tmp_path / "photos" / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(tmp_path / "photos" / str(label) / f"{number:02}.png")
    (tmp_path / "photos" / "1" / "05.png").write_bytes(b"not an image")
    with pytest.raises(ImageFileError, match=r"05\.png"):
        evaluate(Counting(), SUITE, str(tmp_path / "photos"), labels="identity")


def _network() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, 4), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 64, 4)
    )


def test_scores_of_adapted_models(data: Any, tmp_path: Path) -> None:
    from beaufort.models.adaptation import adapt_model

    plain = as_model(_network(), name="net")
    models = [
        plain,
        adapt_model(plain, "bn"),
        adapt_model(plain, "eata:fisher_size=10,e_margin=1,d_margin=1"),
    ]
    run = evaluate(models, SUITE, data, tmp_path)
    (scores,) = run.streams
    found = {one.model: one for one in scores.models}
    tables = {
        (cell.model["name"], cell.condition["level"][-1]): FileStore(tmp_path).read(cell).to_pydict()
        for cell in FileStore(tmp_path).cells().values()
    }
    wrong = {
        key: np.array([top[0] != label for top, label in zip(t["top"], t["label"], strict=True)])
        for key, t in tables.items()
    }
    for name, one in found.items():
        mine = np.mean([wrong[name, seed].mean() for seed in "01"])
        assert one.error.value == pytest.approx(mine)
        assert one.error.n == COUNT
        assert set(one.conditions) == {"fog@5", "contrast@5"}
        assert np.mean(list(one.conditions.values())) == pytest.approx(mine)
        if name != "net":
            source = np.mean([wrong["net", seed].mean() for seed in "01"])
            assert one.gain is not None
            assert one.gain.value == pytest.approx(source - mine)
            assert len(one.collapse) == 2
            assert one.passes is not None
            assert one.passes[0] == pytest.approx(1)
    assert found["net"].gain is None
    assert "net+bn" in str(run)
    assert stream_scores(tmp_path)[0].as_dict() == scores.as_dict()


def test_the_command_compares_methods_and_lists_them(
    data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import json

    from typer.testing import CliRunner

    from beaufort.cli import app

    torch = pytest.importorskip("torch")
    images, labels = data
    (tmp_path / "set").mkdir()
    np.save(tmp_path / "set" / "images.npy", images)
    np.save(tmp_path / "set" / "labels.npy", labels)
    torch.save(_network().state_dict(), tmp_path / "net.pt")
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    words = ["run", "--model", f"torch:{tmp_path / 'net.pt'}", "--set", "arch=python:test_streams:_network"]
    words += ["--adapt", "source", "--adapt", "tent:lr=0.01", "--data", str(tmp_path / "set")]
    words += ["--store", str(tmp_path / "store"), "--json"]
    result = CliRunner().invoke(app, [*words, "--suite", SUITE])
    assert result.exit_code == 0, result.output
    (stream,) = json.loads(result.stdout)["streams"]
    assert {one["model"] for one in stream["models"]} == {"net", "net+tent-lr0.01"}
    assert {one["passes"] and tuple(one["passes"]) for one in stream["models"]} == {None, (1.0, 1.0)}
    shown = CliRunner().invoke(app, [*words[:-1], "--suite", SUITE])
    assert "net+tent-lr0.01" in shown.stdout
    refused = CliRunner().invoke(app, [*words, "--suite", "cifar10-c"])
    assert refused.exit_code == 2
    methods = json.loads(CliRunner().invoke(app, ["ls", "adaptations", "--json"]).stdout)
    assert methods[1]["options"] == {"lr": 0.001, "optimizer": "adam", "steps": 1}
