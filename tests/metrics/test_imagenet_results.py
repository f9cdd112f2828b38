"""The statements of `results/imagenet-c/README.md` about ResNet-50 follow from its scores."""

from __future__ import annotations

import csv
from pathlib import Path

from beaufort.metrics import get_baseline, published_table

RESULTS = Path(__file__).resolve().parents[2] / "results" / "imagenet-c"
TABLE1, TABLE2 = (published_table(f"imagenet-c-table{i}")["ResNet-50"] for i in (1, 2))


def measured() -> dict[str, tuple[float, float]]:
    """The interval of each CE, in percent."""
    with (RESULTS / "scores.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["model"] == "resnet50_224"]
    return {
        row["corruption"]: (100 * float(row["low"]), 100 * float(row["high"]))
        for row in rows
        if row["metric"] == "ce"
    }


def implied(corruption: str) -> tuple[float, float]:
    """The CE of Table 1 that Table 2's relative CE and clean error, both rounded, leave open, in percent."""
    baseline = get_baseline("alexnet")
    error = sum(baseline.errors[corruption]) / len(baseline.errors[corruption])
    assert baseline.clean is not None
    rise = error - baseline.clean
    return tuple(
        100 * ((TABLE2[corruption] + 0.005 * sign) * rise + TABLE2["clean_error"] + 0.0005 * sign) / error
        for sign in (-1, 1)
    )  # type: ignore[return-value]


def test_ten_of_fifteen_corruptions_agree() -> None:
    lost = sorted(set(measured()) - set(TABLE1))
    assert lost == ["elastic_transform", "jpeg_compression"]
    assert [round(end, 1) for end in implied("elastic_transform")] == [84.4, 84.9]
    assert [round(end, 1) for end in implied("jpeg_compression")] == [76.5, 77.0]
    agree = set()
    for corruption, (low, high) in measured().items():
        if corruption in lost:
            least, most = implied(corruption)
        else:
            least = most = 100 * TABLE1[corruption]
        if most >= low - 0.5 and least <= high + 0.5:  # the paper prints whole percents
            agree.add(corruption)
    assert len(agree) == 10
    apart = {"gaussian_noise", "shot_noise", "impulse_noise", "pixelate", "jpeg_compression"}
    assert set(measured()) - agree == apart
    text = " ".join((RESULTS / "README.md").read_text().split())
    assert "ten of the 15" in text
    assert "76.5–77.0" in text
    assert "84.4–84.9" in text
