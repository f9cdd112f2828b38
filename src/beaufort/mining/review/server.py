"""The server of a review."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Sequence
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from beaufort._core.errors import MissingExtraError, OptionError
from beaufort._core.files import lock_file
from beaufort.mining.review.database import ReviewError, open_review


def serve(
    path: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    addresses: Sequence[str] = (),
    started: Callable[[], None] | None = None,
) -> None:
    """Serve a review until interrupted.

    Args:
        path: the file of the review.
        host: address to listen on; the default is reachable only from this machine.
        port: port to listen on.
        addresses: other URLs of the server, for example behind a proxy; requests for other host names are
            rejected. If one begins with https, the cookie is restricted to HTTPS.
        started: called when the server is ready.
    """
    try:
        import fastapi  # noqa: F401
        import uvicorn
    except ImportError:
        raise MissingExtraError(
            "serving a review requires FastAPI and uvicorn: pip install 'beaufort[review]'"
        ) from None
    from beaufort.mining.review.app import make_app

    review = open_review(path)
    https = any(address.lower().startswith("https://") for address in addresses)
    with only_server(path), contextlib.closing(_listening(host, port)) as listening:
        config = uvicorn.Config(
            make_app(review, names=(*_own_names(host), *map(_host_name, addresses)), https=https),
            access_log=False,  # links carry tokens
            proxy_headers=False,  # a forged address would evade the limit on wrong tokens
            server_header=False,
            log_level="warning",
        )
        if started is not None:
            started()
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise ReviewError(f"cannot listen on {host}:{port}: {error.strerror}") from None


@contextlib.contextmanager
def only_server(path: Path) -> Iterator[None]:
    """Lock the review until the process ends; a second server would assign the same seats."""
    with path.with_name(f"{path.name}.lock").open("a") as file:
        try:
            lock_file(file, wait=False)
        except OSError:
            raise ReviewError(f"{path} is already being served by another process") from None
        yield


def _host_name(address: str) -> str:
    """Return the host name of a URL, as in requests.

    >>> _host_name("https://review.example.org/"), _host_name("review.example.org")
    ('review.example.org', 'review.example.org')
    """
    name = urlsplit(address if "//" in address else f"//{address}").hostname
    if not name:
        raise OptionError(f"address must be a URL, such as https://review.example.org, got {address!r}")
    return f"[{name}]" if ":" in name else name


def _own_names(host: str) -> tuple[str, ...]:
    """Return the accepted host names of requests, against DNS rebinding.

    >>> _own_names("192.168.0.7"), _own_names("::1")
    (('192.168.0.7', '127.0.0.1', 'localhost'), ('[::1]', '127.0.0.1', 'localhost'))
    """
    own = host
    with contextlib.suppress(ValueError):
        address = ip_address(host)
        if address.version == 6:
            own = "[::1]" if address.is_unspecified else f"[{address}]"
        elif address.is_unspecified:
            own = "127.0.0.1"
    return tuple(dict.fromkeys((own, "127.0.0.1", "localhost")))
