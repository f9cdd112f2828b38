"""Datasets at URLs are copied once, and again when they change."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest
from PIL import Image

from beaufort._core import remote
from beaufort._core.errors import BeaufortError, ImageFileError
from beaufort.data import load_dataset
from tests.store.s3_server import Proxy


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("cat/1.png", "cat/2.png", "dog/1.png", "dog/2.png", "dog/3.png"):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 20, 3)).astype(np.uint8)).save(path)
    return tmp_path / "pets"


def upload(folder: Path, url: str) -> None:
    place = remote.Remote(url)  # fsspec alone would keep a client, whatever the environment says later
    for path in folder.rglob("*.*"):
        place.put(f"{place.root}/{path.relative_to(folder)}", path.read_bytes())


@pytest.fixture
def proxy(s3: str, s3_address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    monkeypatch.setattr(remote, "PAUSE_S", 0.001)
    with Proxy(s3_address) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.address)
        yield proxy


def test_a_folder_in_a_bucket(s3: str, pets: Path, proxy: Proxy) -> None:
    upload(pets, f"{s3}/pets")
    here, there = load_dataset(pets), load_dataset(f"{s3}/pets")
    assert there.name == "pets"
    assert (there.ids, there.classes) == (here.ids, here.classes)
    assert there.digest() == here.digest()
    proxy.requests.clear()
    assert load_dataset(f"folder:{s3}/pets").digest() == here.digest()
    assert all(
        request.method == "HEAD" or request.lists for request in proxy.requests
    )  # nothing is copied again


def test_one_file_and_a_part(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (6, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "digits.npz", x_train=images, y_train=np.arange(6) % 3)
    upload(tmp_path, f"memory://{tmp_path.name}")
    there = load_dataset(f"npz:memory://{tmp_path.name}/digits.npz#train")
    assert there.digest() == load_dataset(f"npz:{tmp_path}/digits.npz#train").digest()
    assert there.name == load_dataset(f"npz:{tmp_path}/digits.npz#train").name


def test_data_that_change_are_copied_anew(tmp_path: Path, pets: Path, cache: Path) -> None:
    url = f"memory://{tmp_path.name}/pets"
    upload(pets, url)
    first = load_dataset(url)
    (pets / "cat" / "2.png").write_bytes((pets / "dog" / "1.png").read_bytes())
    upload(pets, url)
    assert load_dataset(url).digest() == load_dataset(pets).digest() != first.digest()
    with pytest.raises(ImageFileError, match="changed after"):
        pickle.loads(pickle.dumps(first))


def test_a_dataset_travels_by_its_url(tmp_path: Path, pets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with another cache makes its own copy."""
    url = f"memory://{tmp_path.name}/pets"
    upload(pets, url)
    sent = pickle.dumps(load_dataset(url).shuffled(3))
    monkeypatch.setenv("BEAUFORT_CACHE", str(tmp_path / "elsewhere"))
    found, right = pickle.loads(sent), load_dataset(pets).shuffled(3)
    assert str(tmp_path / "elsewhere") in str(found.pixels.pixels.pixels)
    assert all(np.array_equal(found[i].image, right[i].image) for i in range(5))


@pytest.mark.parametrize("fault", ["error 500", "cut", "slow"])
def test_a_copy_through_a_bad_network(fault: str, s3: str, pets: Path, proxy: Proxy) -> None:
    upload(pets, f"{s3}/pets")
    proxy.requests.clear()
    proxy.faults = lambda request: fault if request.number % 3 == 1 else None
    assert load_dataset(f"{s3}/pets").digest() == load_dataset(pets).digest()


def test_an_interrupted_copy_is_completed(s3: str, pets: Path, proxy: Proxy, cache: Path) -> None:
    upload(pets, f"{s3}/pets")
    proxy.faults = lambda request: "cut" if "dog/3" in request.path and not request.lists else None
    with pytest.raises(ImageFileError, match=r"pets.*7"):
        load_dataset(f"{s3}/pets")
    assert not list(cache.rglob("*.part"))
    assert not list(cache.rglob("dog/3.png"))
    proxy.faults = lambda request: None
    proxy.requests.clear()
    assert load_dataset(f"{s3}/pets").digest() == load_dataset(pets).digest()
    assert sum(request.method == "GET" and ".png" in request.path for request in proxy.requests) < 5


def test_missing_paths_are_reported(s3: str, tmp_path: Path) -> None:
    for url in (f"{s3}/nothing", f"folder:{s3}/nothing", f"memory://{tmp_path.name}/nothing"):
        with pytest.raises(ImageFileError, match="not found"):
            load_dataset(url)
    for url in ("nonsense://x/y", "s3://me:secret@bucket/x"):
        with pytest.raises(BeaufortError) as caught:
            load_dataset(url)
        assert "secret" not in str(caught.value)


def test_paths_that_leave_the_dataset_are_rejected(tmp_path: Path, cache: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.store[f"/{tmp_path.name}/pets/../../up.png"] = memory.open(f"/{tmp_path.name}/x", "wb")
    memory.pipe_file(f"/{tmp_path.name}/pets/cat/1.png", b"x")
    with pytest.raises(ImageFileError, match="out of the dataset"):
        load_dataset(f"memory://{tmp_path.name}/pets")
    assert not list(tmp_path.rglob("up.png"))


def test_an_interrupted_connection_is_reported_by_its_request_alone(
    s3: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio would print a traceback for a task that is not awaited."""
    loop = remote.Remote(s3).fs.loop
    loop.call_exception_handler({"message": "cut", "exception": ConnectionResetError("closing transport")})
    loop.call_exception_handler({"message": "a bug", "exception": ValueError("x")})
    records = [record for record in caplog.records if record.getMessage() in ("cut", "a bug")]
    assert [(record.name, record.getMessage()) for record in records] == [("asyncio", "a bug")]
    assert not capsys.readouterr().out
