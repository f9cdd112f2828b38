"""A local JSON service whose replies are defined by a test."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

__all__ = ["JsonService", "Reply"]


class Reply(NamedTuple):
    """Content, status and headers of a response."""

    content: Any
    """Bytes, or what JSON can say."""
    status: int = 200
    headers: Mapping[str, str] = {}


class JsonService:
    """A server that replies with `answer(path, headers, body)`."""

    def __init__(self, output: Callable[[str, Mapping[str, str], Any], Reply]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                content, status, headers = output(self.path, dict(self.headers), body)
                text = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(text)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()
