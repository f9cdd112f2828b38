"""`python -m beaufort` is the command `beaufort`."""

from __future__ import annotations

from beaufort.cli import main

if __name__ == "__main__":
    main()
