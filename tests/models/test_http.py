"""A service on this machine: the protocol, retries, the token, and invalid responses."""

from __future__ import annotations

import base64
import contextlib
import io
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from beaufort._core.errors import OptionError
from beaufort.models import ModelError, load_model
from beaufort.models import http as adapter
from beaufort.models._http_client import Client, NoResponseError
from tests.json_service import JsonService, Reply

Respond = Callable[[dict[str, Any], Any], tuple[int, Any, dict[str, str]]]


class Service:
    """A server that records its requests; `replies` are used one by one, and the last one is repeated."""

    def __init__(self) -> None:
        self.replies: list[tuple[int, Any, dict[str, str]] | None] = [None]
        self.requests: list[dict[str, Any]] = []
        service = JsonService(self._respond)
        self.server, self.close = service.server, service.close
        self.address = f"{service.url}/classify"

    def _respond(self, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        self.requests.append({"headers": headers, "images": body["images"]})
        output = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        status, content, more = output or (200, {"logits": means(body["images"])}, {})
        return Reply(content, status, more)


def means(images: list[str]) -> list[list[float]]:
    pixels = [np.asarray(Image.open(io.BytesIO(base64.b64decode(image)))) for image in images]
    return [image.reshape(-1, 3).mean(axis=0).tolist() for image in pixels]


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(adapter, "_FIRST_WAIT_S", 0.01)
    running = Service()
    yield running
    running.close()


def test_protocol(service: Service, photos: NDArray[np.uint8]) -> None:
    model = load_model(service.address, classes=3, version="7", max_batch=4)
    np.testing.assert_allclose(model(photos), photos.mean(axis=(1, 2)), rtol=1e-5)
    assert [len(one["images"]) for one in service.requests] == [4, 2]
    assert model.spec.source == service.address
    assert model.spec.reusable
    assert not load_model(service.address).spec.reusable


def test_images_can_be_resized_first(service: Service, photos: NDArray[np.uint8]) -> None:
    load_model(service.address, input_size=16)(photos[:1])
    image = Image.open(io.BytesIO(base64.b64decode(service.requests[0]["images"][0])))
    assert image.size == (16, 16)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_temporary_errors_are_retried(service: Service, photos: NDArray[np.uint8], status: int) -> None:
    service.replies = [(status, b"later", {}), (status, b"later", {}), None]
    assert load_model(service.address)(photos).shape == (6, 3)
    assert len(service.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 404, 422, 302])
def test_rejections_are_final(service: Service, photos: NDArray[np.uint8], status: int) -> None:
    service.replies = [(status, b"no such thing", {"Location": "http://127.0.0.1:9/"})]
    with pytest.raises(ModelError, match=f"{status}"):
        load_model(service.address)(photos)
    assert len(service.requests) == 1


def test_retries_end(service: Service, photos: NDArray[np.uint8]) -> None:
    service.replies = [(503, b"busy", {})]
    with pytest.raises(ModelError, match=r"3 attempts.*status 503, busy"):
        load_model(service.address, retries=2)(photos)
    assert len(service.requests) == 3


def test_retry_after(service: Service, photos: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    one = adapter.Service(service.address, None, 60, 2, None, sleep=waits.append)
    service.replies = [(429, b"", {"Retry-After": "3"}), (503, b"", {}), None]
    one.classify(photos)
    assert waits[0] == 3
    assert 0.01 <= waits[1] <= 0.02
    service.replies = [(429, b"", {"Retry-After": "4000"})]
    with pytest.raises(ModelError, match="4000 s"):
        one.classify(photos)
    assert adapter._seconds("Fri, 31 Dec 1999 23:59:59 GMT") == 0
    assert adapter._seconds("soon") is None


def test_refused_connection(service: Service, photos: NDArray[np.uint8]) -> None:
    with socket.socket() as taken:  # nobody else can listen there
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/"
        with pytest.raises(ModelError, match="2 attempts"):
            load_model(address, retries=1, timeout=60)(photos)


def test_timeout(service: Service, photos: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch) -> None:
    held = threading.Event()
    monkeypatch.setitem(globals(), "means", lambda _: held.wait() and [])
    try:
        with pytest.raises(ModelError, match="timed out"):
            load_model(service.address, retries=0, timeout=0.1)(photos)
    finally:
        held.set()


def test_token(service: Service, photos: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_model(service.address, token="HOUSE_TOKEN")
    monkeypatch.delenv("HOUSE_TOKEN", raising=False)
    with pytest.raises(ModelError, match="option token") as caught:
        model(photos)
    assert "HOUSE" not in str(caught.value)
    monkeypatch.setenv("HOUSE_TOKEN", "s3cret")
    model(photos)
    assert service.requests[0]["headers"]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in repr(model)
    assert "TOKEN" not in json.dumps(model.spec.to_dict())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>", "JSON like .*<html>"),
        ({"scores": []}, "JSON like .*scores"),
        ({"logits": [[1, 2], [3]]}, "JSON like"),
        ({"logits": [[1, 2]]}, r"shape \(1, 2\) for 6 images"),
        ({"logits": [["1"]] * 6}, r"shape \(6, 1\)"),
        ({"logits": [[1]] * 5 + [[1e999]]}, "infinite"),
        ({"logits": [[1]] * 6, "version": "8"}, "version '8' instead of '7'"),
    ],
)
def test_invalid_responses(service: Service, photos: NDArray[np.uint8], content: Any, message: str) -> None:
    service.replies = [(200, content, {})]
    with pytest.raises(ModelError, match=message):
        load_model(service.address, version="7")(photos)


def test_addresses() -> None:
    for address, options in (
        ("http://", {}),
        ("http://me:secret@host/", {}),
        ("http://host/", {"timeout": 0}),
        ("http://host/", {"range": "0..1"}),
        ("http://host/", {"layout": "NCHW"}),
    ):
        with pytest.raises(OptionError):
            load_model(address, **options)
    assert load_model("https://host/a?key=secret").spec.source == "https://host/a"


def test_secrets_stay_in_the_request(service: Service, photos: NDArray[np.uint8]) -> None:
    model = load_model(
        f"{service.address}?key=s3cret", token="HOUSE_TOKEN", name="http://me:s3cret@h/x?s3cret"
    )
    assert model.spec.source == service.address
    assert "s3cret" not in repr(model) + json.dumps(model.spec.to_dict())
    assert "HOUSE" not in repr(model)
    for token in ("s3cret-value", "two words", ""):
        with pytest.raises(OptionError, match="environment variable") as caught:
            load_model(service.address, token=token)
        assert "s3cret" not in str(caught.value)


def test_connections_are_kept(photos: NDArray[np.uint8], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(BaseHTTPRequestHandler, "protocol_version", "HTTP/1.1")
    running = Service()
    places: set[Any] = set()
    taken = running.server.process_request

    def noted(request: Any, place: Any) -> None:
        places.add(place)
        taken(request, place)

    monkeypatch.setattr(running.server, "process_request", noted)
    load_model(running.address, max_batch=1)(photos)
    assert (len(running.requests), len(places)) == (6, 1)
    running.close()


def test_slow_responses_time_out(photos: NDArray[np.uint8]) -> None:
    """Each byte arrives in time; the response does not."""
    line = socket.create_server(("127.0.0.1", 0))

    def dribble() -> None:
        with line.accept()[0] as caller, contextlib.suppress(OSError):
            while True:
                caller.sendall(b"H")
                time.sleep(0.05)

    threading.Thread(target=dribble, daemon=True).start()
    with pytest.raises(ModelError, match=r"timed out after 0\.5 s"):  # or it would never end
        load_model(f"http://127.0.0.1:{line.getsockname()[1]}/", timeout=0.5, retries=0)(photos)
    line.close()


def test_both_timeouts_name_the_time_limit() -> None:
    """The timeouts in the request thread and in the waiting thread."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Client(f"http://127.0.0.1:{silent.getsockname()[1]}/", 0.1)
        with pytest.raises(NoResponseError, match=r"timed out after 0\.1 s"):
            client._exchange(client._client, b"", {}, 1000)
        with pytest.raises(NoResponseError, match=r"timed out after 0\.1 s"):
            client.post(b"", {}, 1000)


def test_incomplete_responses_are_retried(service: Service, photos: NDArray[np.uint8]) -> None:
    service.replies = [(200, b'{"logits": [[1, 2', {"Content-Length": "400"}), None]
    assert load_model(service.address)(photos).shape == (6, 3)
    assert len(service.requests) == 2
