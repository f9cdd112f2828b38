"""Draw icons of the open set by style, for the documentation.

beaufort make icons-open icons
python tools/icons_sheet.py icons      # writes docs/assets/icons-open.png
"""

from __future__ import annotations

import sys
from pathlib import Path

from beaufort.studies.icon_examples import example_sheet

SHEET = Path(__file__).parents[1] / "docs" / "assets" / "icons-open.png"


def main(folder: str) -> None:
    """Draw the sheet from the icons in a directory."""
    SHEET.write_bytes(example_sheet(Path(folder)).png)


if __name__ == "__main__":
    main(*sys.argv[1:])
