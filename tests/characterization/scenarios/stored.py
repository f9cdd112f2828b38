"""A store that the recorded commit wrote: it is read, scored and completed.

`store_before.zip` holds predictions of `toy` for all 40 images under every condition but one, and of `toy2` for
the first 20 images. Completing it asks for 40 + 7 × 20 predictions and leaves complete cells as they are.
"""

# ruff: noqa: E501

from __future__ import annotations

from tests.characterization.scenario import Group, command, python

UNPACK = """
import zipfile
with zipfile.ZipFile(here / "store_before.zip") as archive:
    archive.extractall(".")
record("files", sorted(path.as_posix() for path in Path("kept").rglob("*.parquet")))
"""

BEFORE = """
import hashlib, json, os
files = {path.as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in Path("kept").rglob("*.parquet")}
Path("bytes.json").write_text(json.dumps(files))
os.environ["SHOWN"] = str(Path("shown.txt").resolve())
Path("shown.txt").write_text("")
"""

AFTER = """
import hashlib, json, os
del os.environ["SHOWN"]
before = json.loads(Path("bytes.json").read_text())
now = {path.as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in Path("kept").rglob("*.parquet")}
record("complete cells with the same bytes", sorted(path for path in before if now.get(path) == before[path]))
record("cells", sorted(now))
shown = sum(map(int, Path("shown.txt").read_text().split()))
record("images shown to the models, at least and at most", [shown >= {missing}, shown <= {missing} + 32])
"""

BOTH = "run --model python:our_models:toy --model python:our_models:toy2 --suite mine.yaml --data toys --store kept --json"

READ = """
from beaufort.results import open_results, score
from beaufort.store import FileStore, query

store = FileStore("kept")
cells = store.cells()
record("cells", {name: [cell.model["name"], cell.condition_name] for name, cell in sorted(cells.items())})
record("fingerprints", all(cell.fingerprint == name for name, cell in cells.items()))
record("runs", len(store.runs()))
scores = score(open_results("kept", models=["toy2"]), resamples=100)
one = scores.models[0]
record("toy2", {name: [value.value, value.low, value.high] for name, value in one.metrics.items()})
"""

GROUPS = [
    Group(
        "store-before",
        (
            python("unpack", UNPACK, ignore="*"),
            command("ls", "store ls kept --json"),
            command("verify", "store verify kept --json"),
            python("read", READ),
            command(
                "query",
                'query "select model, condition, count(*) as n, sum(label) as labels, sum(top[1]) as top from predictions group by all order by all" --store kept --json',
            ),
            command("report", "report kept --model toy2 --format json", stdout="json"),
            command("merge", "store merge copy kept"),
            command("what is missing", BOTH.replace("--json", "--dry-run --json")),
            python("before", BEFORE, ignore="*"),
            command("complete", BOTH, ignore="*"),
            python("after", AFTER.replace("{missing}", str(40 + 7 * 20))),
            command("compare", "compare toy toy2 --store kept --json"),
            command("nothing is missing", BOTH.replace("--json", "--dry-run --json")),
            command("verify completed", "store verify kept --json"),
        ),
    ),
]
