"""`headroom.estimate`: a scenario in, a prediction out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Union

from ._program import ask
from ._types import Estimate

What = Union[str, "os.PathLike[str]", Mapping[str, Any], None]


def estimate(what: What = None, /, **settings: Any) -> Estimate:
    """What a training run needs.

    `what` is a preset's or a model's id, a scenario file, a link, or a scenario as nested dicts (docs/scenario.md).
    Keywords change it: by a setting's key in links (`mb=4, seq=2048, gpu="h100-sxm5-80gb"`), or by section
    (`data={"micro_batch": 4}`).

    >>> estimate("gpt2", mb=4, gpu="rtx-4090")["fits"]
    True

    Raises `Refused` with the program's words where there is no answer.
    """
    text = ""
    if what is None or isinstance(what, Mapping):
        text, word = json.dumps({"version": 1, **(what or {})}), "-"
    else:
        word = os.fspath(what)
    answer, _ = ask("estimate", word, *changes(settings), text=text)
    return answer  # type: ignore[return-value]


def changes(settings: Mapping[str, Any]) -> list[str]:
    """The options that set these fields."""
    words: list[str] = []
    for path, value in settings.items():
        if isinstance(value, Mapping) and path not in ("dims", "model.dims"):
            words += changes({f"{path}.{name}": inner for name, inner in value.items()})
        elif value is not None:
            words.append(f"--set={path}={plain(value)}")
    return words


def plain(value: Any) -> str:
    """A value as the text that a setting reads."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={plain(inner)}" for name, inner in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return ",".join(plain(item) for item in value)
    return str(value)
