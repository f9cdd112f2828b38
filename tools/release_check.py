"""Check everything that must hold before a release, and print one line for each point.

python tools/release_check.py            # all points; tests and smoke tests take most of an hour
python tools/release_check.py --quick    # without tests, smoke tests and documentation
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Callable
from importlib.metadata import distributions
from pathlib import Path

import yaml

import beaufort

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAX_WHEEL, MAX_SDIST = 5_000_000, 8_000_000


def main() -> None:
    """Run the checks; the exit code is 1 if one of them fails."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="skip what takes minutes")
    quick = parser.parse_args().quick
    checks: dict[str, Callable[[], str]] = {
        "working tree": working_tree,
        "changelog": changelog,
        "citation": citation,
        "metadata": metadata,
        "licenses": licenses,
        "vulnerabilities": vulnerabilities,
    }
    if not quick:
        checks |= {
            "tests": lambda: make("test-all"),
            "documentation": lambda: make("docs"),
            "distributions": distributions_work,
        }
    problems = 0
    for name, check in checks.items():
        problem = check()
        problems += bool(problem)
        print(f"{'FAILED' if problem else 'ok':6}  {name}{f': {problem}' if problem else ''}", flush=True)
    sys.exit(bool(problems))


def working_tree() -> str:
    """Return the uncommitted files."""
    return call("git", "status", "--porcelain").strip().replace("\n", ", ")


def changelog() -> str:
    """Return what is wrong with the entry of this version."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    entry = re.search(rf"^## {re.escape(beaufort.__version__)} \((.*)\)$", text, re.M)
    if entry is None:
        return f"no section for {beaufort.__version__}"
    return "" if re.fullmatch(r"\d{4}-\d\d-\d\d", entry[1]) else f"the date is {entry[1]!r}"


def citation() -> str:
    """Return a difference between CITATION.cff and the version or the changelog."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    if cited["version"] != beaufort.__version__:
        return f"cites {cited['version']}, the version is {beaufort.__version__}"
    if "date-released" not in cited:
        return "no date-released"
    dated = f"## {beaufort.__version__} ({cited['date-released']})"
    found = dated in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return "" if found else "date differs from the changelog"


def metadata() -> str:
    """Return the missing fields of the package metadata."""
    urls = PROJECT.get("urls", {})
    missing = [name for name in ("Documentation", "Source", "Issues", "Changelog") if name not in urls]
    return f"project.urls has no {', '.join(missing)}" if missing else ""


def licenses() -> str:
    """Return the dependencies of the core whose metadata name no license; write the list of all licenses."""
    names = {re.split(r"[^\w-]", one)[0].lower().replace("_", "-") for one in PROJECT["dependencies"]}
    rows, unknown = [], []
    for package in sorted(distributions(), key=lambda one: one.name.lower()):
        fields = package.metadata.json
        classifiers = [one.rpartition(":: ")[2] for one in fields.get("classifier", ()) if "License" in one]
        named = str(fields.get("license_expression") or fields.get("license") or "")
        found = named.partition("\n")[0] or "; ".join(classifiers)
        rows.append(f"{package.name} {package.version}: {found or 'unknown'}")
        if not found and package.name.lower().replace("_", "-") in names:
            unknown.append(package.name)
    (ROOT / "dist").mkdir(exist_ok=True)
    (ROOT / "dist" / "licenses.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    if not (ROOT / "LICENSE").is_file():
        return "LICENSE not found"
    return f"no license in the metadata of {', '.join(unknown)}" if unknown else ""


def vulnerabilities() -> str:
    """Return known vulnerabilities of the pinned dependencies; it needs a network.

    pip-audit runs in an environment of its own, so that its dependencies need not fit ours.
    """
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        audit = ("pip_audit", "--no-deps", "--disable-pip", "-r", "constraints-dev.txt")
        for module in (("pip", "install", "--quiet", "pip-audit"), audit):
            command = [str(python), "-m", *module]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                return f"{module[0]} failed: {(done.stdout + done.stderr).strip()[-2000:]}"
    return ""


def distributions_work() -> str:
    """Build both distributions and try them; return what is too large or does not work."""
    if problem := make("package"):
        return problem
    for pattern, most in (("*.whl", MAX_WHEEL), ("*.tar.gz", MAX_SDIST)):
        for path in (ROOT / "dist").glob(pattern):
            if path.stat().st_size > most:
                return f"{path.name} has {path.stat().st_size:,} bytes, at most {most:,} are allowed"
    return ""


def make(target: str) -> str:
    """Run a target of the Makefile with its output on the terminal; return whether it failed."""
    done = subprocess.run(["make", target], cwd=ROOT, check=False)
    return f"`make {target}` failed" if done.returncode else ""


def call(*command: str) -> str:
    """Return the output of a command."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main()
