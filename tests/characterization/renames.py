"""What is spelled differently today than at the recorded commit.

A rename goes here once and then holds for every scenario. A scenario for which a replacement is not enough
gets its own `now` spelling, which is used as it stands.
"""

from __future__ import annotations

import re
import shlex

COMMANDS: dict[str, str] = {}
"""Commands that moved, by the first words of the command line: {"query": "store query"}."""

OPTIONS: dict[str, str] = {}
"""Options with a new name, in every command: {"--front": "--filter"}.

A key may name the command, as "run --front"; such keys go before the others. An empty value drops a flag.
"""

CODE: dict[str, str] = {}
"""Replacements in code, longest first: {"beaufort.fronts import": "beaufort.models.filters import"}."""

KEYS: dict[str, str] = {}
"""Keys of JSON, columns of CSV and fields that have a new name: {"old": "new"}."""

FILES: dict[str, str] = {}
"""Parts of the names of written files that are new: {"old": "new"}."""

VALUES: dict[str, str] = {}
"""Values that have a new name, where they are words of an output and in no fingerprint: {"old": "new"}."""


def command(line: str) -> str:
    """Return a command line in today's spelling."""
    words = shlex.split(line)
    own = {old: new for old, new in OPTIONS.items() if " " in old}
    first = [word for word in words[:2] if not word.startswith("-")]
    options = {old: new for old, new in OPTIONS.items() if " " not in old}
    for old, new in own.items():
        *named, option = old.split()
        if first[: len(named)] == named:
            options[option] = new
    made = [options.get(word, word) for word in words]
    text = shlex.join(word for word in made if word)
    for old, new in sorted(COMMANDS.items(), key=lambda pair: -len(pair[0])):
        if text == old or text.startswith(f"{old} "):
            return new + text[len(old) :]
    return text


def code(text: str) -> str:
    """Return code in today's spelling."""
    if not CODE:
        return text
    pattern = "|".join(re.escape(old) for old in sorted(CODE, key=len, reverse=True))
    return re.sub(pattern, lambda match: CODE[match[0]], text)
