"""The program that this package brings, and how it is asked."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any


class Refused(ValueError):
    """What the program says where it has no answer: a line for each problem."""


def program() -> str:
    """The program's path: what HEADROOM_BINARY names, or the one in this package."""
    named = os.environ.get("HEADROOM_BINARY")
    if named:
        return named
    path = Path(__file__).with_name("bin") / ("headroom.exe" if os.name == "nt" else "headroom")
    if not path.is_file():
        raise FileNotFoundError(f"{path}: install the wheel (scripts/wheel builds it), or name the program by HEADROOM_BINARY")
    return str(path)


def ask(command: str, *words: str, text: str = "") -> tuple[dict[str, Any], list[str]]:
    """The answer of a command and the notes beside it; `text` is its standard input."""
    asked = [program(), command, "--json", *words]
    done = subprocess.run(asked, input=text, capture_output=True, text=True, encoding="utf-8")
    said = [line.removeprefix("headroom: ") for line in done.stderr.splitlines() if line]
    # 1 says that the run does not fit.
    if done.returncode not in (0, 1):
        raise Refused("\n".join(said) or f"the program ended with {done.returncode}")
    return json.loads(done.stdout), said
