from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from beaufort import OptionError, UnknownNameError, as_model, evaluate
from beaufort.evaluation import RunOptions
from beaufort.models import prepare_torchvision
from beaufort.results import robustness, scalars
from beaufort.suites import suite_from_corruptions

SUITE = suite_from_corruptions(["brightness", "contrast"], [1, 5])


@pytest.fixture(scope="module")
def data() -> tuple[NDArray[Any], NDArray[Any]]:
    colors = np.random.default_rng(0).integers(0, 256, (24, 1, 1, 3))
    return np.tile(colors, (1, 32, 32, 1)).astype(np.uint8), colors.argmax(-1).ravel()


def brightest(images: NDArray[Any]) -> NDArray[Any]:
    found: NDArray[Any] = images.mean(axis=(1, 2), dtype=np.float32)
    return found


class Recorder:
    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    def on_start(self, plan: Any) -> None:
        self.calls.append(("start", len(plan.cells)))

    def on_scores(self, scores: Any) -> None:
        self.calls.append(("scores", scalars(scores)))

    def on_end(self, run: Any) -> None:
        self.calls.append(("end", len(run.results)))


def run(data: Any, *trackers: Any, name: str = "net") -> Any:
    model = as_model(brightest, name=name)
    return evaluate(model, SUITE, data, options=RunOptions(trackers=trackers))


def test_a_tracker_is_notified_in_order(data: Any) -> None:
    recorder = Recorder()
    found = run(data, recorder)
    assert [name for name, _ in recorder.calls] == ["start", "scores", "end"]
    assert recorder.calls[0][1] == recorder.calls[2][1] == len(found.results) == 5
    numbers = recorder.calls[1][1]
    scores = found.scores()
    assert numbers["net/mean_accuracy"] == scores.models[0].metrics["mean_accuracy"].value
    assert (
        numbers["net/mean_accuracy_low"] <= numbers["net/mean_accuracy"] <= numbers["net/mean_accuracy_high"]
    )
    assert numbers["net/clean_accuracy"] == 1
    assert numbers["net/error/contrast"] == scores.models[0].corruptions["contrast"].value


def test_a_tracker_that_fails_at_the_end_does_not_lose_the_run(data: Any) -> None:
    class Fails:
        def on_scores(self, scores: Any) -> None:
            raise ConnectionError("server is gone")

    recorder = Recorder()
    with pytest.warns(UserWarning, match="server is gone"):
        found = run(data, Fails(), recorder)
    assert len(found.results) == 5
    assert recorder.calls[-1][0] == "end"


def test_a_tracker_that_fails_at_the_start_ends_the_run(data: Any) -> None:
    class Fails:
        def on_start(self, plan: Any) -> None:
            raise ConnectionError("wrong key")

    with pytest.raises(ConnectionError, match="wrong key"):
        run(data, Fails())


def test_unknown_trackers_and_options(data: Any) -> None:
    with pytest.raises(UnknownNameError, match="mlflow"):
        run(data, "mlfow")
    with pytest.raises(OptionError, match="colour"):
        run(data, "tensorboard:colour=red")
    with pytest.raises(OptionError, match="'red'"):
        run(data, "tensorboard:red")


def test_tensorboard_writes_the_scores(data: Any, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = run(data, f"tensorboard:directory={tmp_path},step=7")
    events = EventAccumulator(str(tmp_path)).Reload()
    for name, value in scalars(found.scores()).items():
        (event,) = events.Scalars(name)
        assert event.step == 7
        assert event.value == pytest.approx(value, abs=1e-6)


@pytest.mark.slow
def test_mlflow_records_the_scores(
    data: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(tmp_path.as_uri())
    found = run(data, "mlflow:experiment=robust,run=first", name="my net")
    (record,) = mlflow.tracking.MlflowClient().search_runs(
        [mlflow.get_experiment_by_name("robust").experiment_id]
    )
    assert record.info.run_name == "first"
    assert record.data.params["beaufort.models"] == "my net"
    assert record.data.metrics == pytest.approx(scalars(found.scores()))
    assert mlflow.active_run() is None


@pytest.mark.slow
def test_wandb_records_the_scores_offline(data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_SILENT", "true")
    own = wandb.init(project="robust", mode="offline", dir=tmp_path)
    try:
        found = run(data, "wandb")
        summary = dict(own.summary)
        assert own.config["beaufort.models"] == "net"
    finally:
        own.finish()
    numbers = scalars(found.scores())
    assert {name: summary[name] for name in numbers} == pytest.approx(numbers)


@pytest.fixture
def network() -> Any:
    torch = pytest.importorskip("torch")

    class Brightest(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(3))

        def forward(self, images: Any) -> Any:
            return images.mean((2, 3)) * self.scale

    return Brightest


def test_robustness_of_a_network_in_training(data: Any, network: Callable[[], Any]) -> None:
    model = network().train()
    numbers = robustness(model, SUITE, data, limit=12)
    assert model.training
    assert numbers["clean_accuracy"] == 1
    assert {"mean_accuracy", "mean_accuracy_low", "error/contrast"} <= numbers.keys()
    assert numbers == robustness(model, SUITE, data, limit=12)


@pytest.mark.slow
def test_lightning_callback_logs_every_second_epoch(
    data: Any, network: Callable[[], Any], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    prepare_torchvision()
    lightning = pytest.importorskip("lightning")
    import torch

    from beaufort.compat.lightning import RobustnessCallback

    class Task(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.net = network()

        def forward(self, images: Any) -> Any:
            return self.net(images)

        def training_step(self, batch: Any, index: int) -> Any:
            return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    logged: list[tuple[int, float]] = []

    class Spy(lightning.Callback):  # type: ignore[misc, name-defined]
        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            value = trainer.callback_metrics.get("robustness/clean_accuracy")
            logged.append((trainer.current_epoch, float("nan") if value is None else float(value)))

    images = torch.from_numpy(data[0]).permute(0, 3, 1, 2) / 255
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(images, torch.from_numpy(data[1])), batch_size=8
    )
    trainer = lightning.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=tmp_path,
        callbacks=[RobustnessCallback(SUITE, data, every_n_epochs=2, limit=12), Spy()],
    )
    trainer.fit(Task(), loader)
    assert [epoch for epoch, value in logged if not np.isnan(value)] == [2, 3]
    assert float(trainer.callback_metrics["robustness/mean_accuracy"]) > 0.5
