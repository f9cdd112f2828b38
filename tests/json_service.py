"""A service on this machine that is asked in JSON, and answers what a test tells it to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

__all__ = ["JsonService", "Reply"]


class Reply(NamedTuple):
    """What comes back."""

    content: Any
    """Bytes, or what JSON can say."""
    status: int = 200
    headers: Mapping[str, str] = {}


class JsonService:
    """A server that `answer` speaks for: it is called with the path, the headers and what was sent."""

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
