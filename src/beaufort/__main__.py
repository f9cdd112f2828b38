"""`python -m beaufort` is the command `beaufort`."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line; an interrupt while modules are imported exits with code 130, too."""
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(130))
    from beaufort.cli import main as run

    try:
        signal.signal(signal.SIGINT, before)
        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        sys.path.pop(0)  # the working folder, which Python puts first for -m: a file in it must not be run
    main()
