"""`python -m beaufort` is the command `beaufort`."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        sys.path.pop(0)  # the working folder, which Python puts first for -m: a file in it must not be run
    from beaufort.cli import main

    main()
