"""The version of the installed package; of a checkout, that of its crates."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path


def found() -> str:
    try:
        return importlib.metadata.version("gpu-headroom")
    except importlib.metadata.PackageNotFoundError:
        manifest = Path(__file__).parents[3] / "Cargo.toml"
        text = manifest.read_text(encoding="utf-8") if manifest.is_file() else ""
        version = re.search(r'^version = "(.*)"$', text, re.M)
        return version.group(1) if version else "0"


__version__: str = found()
