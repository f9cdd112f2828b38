"""Imports flow one way, public names are what they say, and importing is cheap."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import beaufort
from beaufort._core.plugins import offered

SOURCE = Path(beaufort.__file__).parent

# A room imports from its own row and from rows above it.
LAYERS = (
    ("_core",),
    ("corruptions", "metrics"),
    ("data", "models"),
    ("suites",),
    ("store", "evaluation"),
    ("results", "report"),
    ("testbed", "training", "mining", "studies"),
    ("cli", "testing", "compat"),
)
LAYER = {name: row for row, names in enumerate(LAYERS) for name in names}


def modules() -> list[str]:
    found = [info.name for info in pkgutil.walk_packages([str(SOURCE)], "beaufort.")]
    return ["beaufort", *sorted(found)]


def imports(path: Path) -> Iterator[str]:
    """Everything of Beaufort that a file imports, as dotted names, anywhere but under TYPE_CHECKING."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports are not used"
            if (node.module or "").partition(".")[0] == "beaufort":
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("beaufort."))


def room_imports() -> Iterator[tuple[Path, str, list[str]]]:
    """Each import of another room: the file, its room and the parts of the imported name."""
    for path in sorted(SOURCE.rglob("*.py")):
        room, *rest = path.relative_to(SOURCE).parts
        if not rest:  # __init__ and __main__ are the front door
            continue
        for name in imports(path):
            other = name.split(".")[1:]
            if other[0] in LAYER and other[0] != room:
                yield path.relative_to(SOURCE), room, other


def test_there_are_at_most_17_rooms_in_8_layers() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    modules_beside = {path.stem for path in SOURCE.glob("*.py")}
    assert rooms == set(LAYER)
    assert modules_beside == {"__init__", "__main__"}
    assert len(rooms) <= 17
    assert len(LAYERS) <= 8


def test_imports_flow_one_way() -> None:
    wrong = [
        f"{path}: {'.'.join(name)}" for path, room, name in room_imports() if LAYER[name[0]] > LAYER[room]
    ]
    assert not wrong, wrong


def test_no_room_imports_private_modules_of_another() -> None:
    def is_private(name: list[str]) -> bool:
        return any(part.startswith("_") and not part.startswith("__") for part in name[1:])

    wrong = [f"{path}: {'.'.join(name)}" for path, _, name in room_imports() if is_private(name)]
    assert not wrong, wrong


def test_the_command_line_finds_applications_by_entry_points() -> None:
    imported = {name.split(".")[2] for name in imports(SOURCE / "cli" / "_app.py") if ".cli." in name}
    commands = {entry.module.split(".")[2] for entry in offered("beaufort.commands").values()}
    assert commands
    assert not imported & commands


def test_only_packages_have_public_names_listed_and_sorted() -> None:
    """`__all__` exists in package `__init__` files only, sorted, without duplicates, with existing names."""
    for path in SOURCE.rglob("*.py"):
        if path.name != "__init__.py":
            assert not re.search(r"^__all__\b", path.read_text(encoding="utf-8"), re.MULTILINE), path
    for name in importable():
        module = importlib.import_module(name)
        public = getattr(module, "__all__", [])
        assert not [entry for entry in public if not hasattr(module, entry)], name
        assert len(set(public)) == len(public), name
        assert public == sorted(public, key=_order), name


def _order(name: str) -> tuple[int, str]:
    """CONSTANTS, then Classes, then functions, as ruff sorts them."""
    return (0 if name.isupper() and len(name) > 1 else 1 if name[0].isupper() else 2), name


def importable() -> list[str]:
    """Every module that can be imported here: Triton kernels only where Triton is."""
    triton = importlib.util.find_spec("triton") is not None
    return [name for name in modules() if triton or not (name.endswith("_kernels") or ".triton." in name)]


def test_no_module_is_shadowed() -> None:
    """`import beaufort.a.b as c` and `beaufort.a.b` are the module, never something else of that name."""
    shadowed = []
    for name in importable():
        module = importlib.import_module(name)
        parent, _, own = name.rpartition(".")
        if parent and getattr(sys.modules[parent], own, module) is not module:
            shadowed.append(name)
    assert not shadowed


def test_one_class_name_is_one_class() -> None:
    """Public classes have distinct names; private names of corruption files are not public."""
    homes: dict[str, set[str]] = {}
    for name in importable():
        module = importlib.import_module(name)
        public = () if name.startswith("beaufort.corruptions.") else vars(module)
        for entry in public:
            value = getattr(module, entry)
            if isinstance(value, type) and value.__module__ == name and not entry.startswith("_"):
                homes.setdefault(entry, set()).add(name)
    twice = {entry: sorted(names) for entry, names in homes.items() if len(names) > 1}
    assert not twice


def test_public_names_of_the_package() -> None:
    assert len(beaufort.__all__) <= 22
    for name in (*beaufort.__all__, *beaufort._HOMES):
        assert getattr(beaufort, name) is not None
    assert set(beaufort.__all__) - {"__version__"} <= set(beaufort._HOMES)


PROBE = """
import json, sys
import beaufort
print(json.dumps([name for name in sys.modules if name.partition(".")[0] != "beaufort"]))
"""


def test_importing_is_cheap() -> None:
    """A quarter of a second, most of it for NumPy: few modules are read, and none of the large packages."""
    child = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    loaded = json.loads(child.stdout)
    assert len(loaded) < 300
    assert not {
        "numba",
        "cv2",
        "torch",
        "scipy",
        "skimage",
        "PIL",
        "pyarrow",
        "duckdb",
        "onnxruntime",
        "jinja2",
    } & {name.partition(".")[0] for name in loaded}


LAZY = """
import numpy
from beaufort import corrupt
print([part for part in ("fft", "random") if part in vars(numpy)])
"""


def test_parts_of_numpy_that_threads_use_are_imported_before() -> None:
    """Two threads that are the first to use one can fail while NumPy imports it."""
    child = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)
    assert child.stdout == "['fft', 'random']\n"


WITHOUT_JINJA = """
import sys
sys.modules["jinja2"] = sys.modules["markupsafe"] = None
import numpy as np
import beaufort, beaufort.evaluation, beaufort.data.writers, beaufort.report, beaufort.results
import beaufort.testbed
print(beaufort.corrupt(np.zeros((64, 64, 3), np.uint8), "contrast", 1).shape)
"""


def test_only_pages_need_jinja() -> None:
    child = subprocess.run([sys.executable, "-c", WITHOUT_JINJA], capture_output=True, text=True, check=True)
    assert child.stdout == "(64, 64, 3)\n"


def test_templates_escape_what_they_are_given() -> None:
    """Style, script and data of the base template are ours or made safe; so is the drawing of the testbed."""
    marked = {
        (path.parts[-3], line.strip())
        for path in SOURCE.rglob("templates/*.html")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "safe" in line or "autoescape" in line
    }
    assert marked == {
        ("pages", "<style>{{ style|safe }}</style>"),
        ("pages", '<script type="application/json" id="data">{{ data|safe }}</script>'),
        ("pages", "<script>{{ script|safe }}</script>"),
        ("testbed", '<div class="without-script">{{ figure|safe }}</div>'),
    }


def test_html_is_in_templates_alone() -> None:
    tag = re.compile(r"</?(html|body|div|p|table|td|span|section|article|h[1-6])[ >]")
    made = [str(path) for path in SOURCE.rglob("*.py") if tag.search(path.read_text(encoding="utf-8"))]
    assert not made


def test_results_name_no_folder_of_a_machine() -> None:
    """Results contain no paths of the machine on which they were made."""
    path = re.compile(r"(?<![\w.:/<>)\]-])/(?:[\w.-]+/)+[\w.-]+")
    folder = Path(__file__).parents[1] / "results"
    texts = [file for end in ("md", "csv", "json") for file in sorted(folder.rglob(f"*.{end}"))]
    assert texts
    found = [(str(file), path.findall(file.read_text(encoding="utf-8"))) for file in texts]
    assert not [one for one in found if one[1]]
    assert path.search("see /srv/somebody/lib/python.py, line 5")
