"""The program's commands as functions: a run in, an answer out."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, Union

from ._answers import Estimate, Fit
from ._program import ask

What = Union[str, "os.PathLike[str]", Mapping[str, Any], None]


def estimate(what: What = None, /, **settings: Any) -> Estimate:
    """What a training run needs.

    `what` is whatever `headroom estimate` takes (a preset, a model's name, a file, a link, a sentence), or a scenario as
    nested dicts (docs/scenario.md). Keywords change it: by a setting's key in links or a common word for it
    (`mb=4, seq_len=2048, gpu="h100-sxm5-80gb"`), or by section (`data={"micro_batch": 4}`).

    >>> estimate("gpt2", batch=4, gpu="rtx-4090").fits
    True

    Raises `Refused` with the program's words where there is no answer.
    """
    return Estimate(_asked("estimate", what, settings))


def fit(what: What = None, /, **settings: Any) -> Fit:
    """The largest micro-batch that fits."""
    return Fit(_asked("fit", what, settings))


def plan(what: What = None, /, **settings: Any) -> dict[str, Any]:
    """What to change so that the run fits, as whole runs."""
    return _asked("plan", what, settings)


def layout(what: What = None, /, **settings: Any) -> dict[str, Any]:
    """The fastest parallelism layout, and the fewest GPUs that can train it."""
    return _asked("layout", what, settings)


def doctor(log: Union[str, "os.PathLike[str]"], what: What = None, /, **settings: Any) -> dict[str, Any]:
    """Why a run was out of memory: `log` is its error message, log or table, or a file with it; `what` the run, if known."""
    text, word = "", os.fspath(log)
    if not isinstance(log, os.PathLike) and not _is_file(word):
        text, word = word, "-"
    options = changes(settings)
    if what is not None or settings:
        # The log may be on standard input, so that a scenario comes as a link.
        options = [f"--scenario={_link(what, settings)}"]
    return ask("doctor", word, *options, text=text)[0]


def read(*what: Union[str, "os.PathLike[str]"]) -> dict[str, Any]:
    """What files, a command or a sentence say of a run: read, assumed, missing, not modelled."""
    words = [os.fspath(word) for word in what]
    if len(words) == 1 and "\n" in words[0]:
        return ask("import", "--facts", "-", text=words[0])[0]
    return ask("import", "--facts", "--", *words)[0]


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


def _asked(command: str, what: What, settings: Mapping[str, Any]) -> dict[str, Any]:
    text = ""
    if what is None or isinstance(what, Mapping):
        text, word = json.dumps({"version": 1, **(what or {})}), "-"
    else:
        word = os.fspath(what)
        if "\n" in word:
            text, word = word, "-"
    return ask(command, *changes(settings), "--", word, text=text)[0]


def _link(what: What, settings: Mapping[str, Any]) -> str:
    return str(_asked("link", what, settings)["link"])


def _is_file(word: str) -> bool:
    return "\n" not in word and len(word) < 4096 and os.path.isfile(word)
