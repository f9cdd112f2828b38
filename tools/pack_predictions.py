"""Move the predictions of studies into their archives, one Parquet file for each study.

    python tools/pack_predictions.py results/icons-50 results/enhancements

The files of single networks are deleted once the archive returns the same predictions.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from beaufort.studies.prediction_archive import ARCHIVE, archived, current_name, write_archive
from beaufort.studies.predictions import StudyPredictions, read_predictions


def main() -> None:
    """Pack the predictions of each study that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("studies", type=Path, nargs="+", help="directories of studies")
    for folder in parser.parse_args().studies:
        paths = sorted(path for path in folder.rglob("*.npz") if path.parent.name != "renormalized")
        write_archive(folder, [path.relative_to(folder).as_posix() for path in paths])
        packed = archived(folder)
        for path in paths:
            if not same(packed[current_name(path.relative_to(folder).as_posix())], read_predictions(path)):
                raise SystemExit(f"{folder / ARCHIVE} differs from {path}")
        for path in paths:
            path.unlink()
        size = (folder / ARCHIVE).stat().st_size
        print(f"{folder}: {len(paths)} files moved to {ARCHIVE}, {size:,} bytes")


def same(one: StudyPredictions, other: StudyPredictions) -> bool:
    """Return whether two predictions are equal in every part."""
    equal = (one.predicted == other.predicted).all() and (one.labels == other.labels).all()
    return bool(equal) and one.conditions == other.conditions and one.facts == other.facts


if __name__ == "__main__":
    main()
