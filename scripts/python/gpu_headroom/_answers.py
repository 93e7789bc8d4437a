"""Answers as dictionaries which a notebook shows as a bar and a verdict."""

from __future__ import annotations

from html import escape
from typing import Any, Optional

from ._types import Band

# The page's colours, in its drawing order.
COLOURS = {
    "parameters": "#1f56a3", "optimizer-states": "#3c3b8e", "gradients": "#338ab8", "ema": "#62a9b3", "buffers": "#9dacbb",
    "inputs": "#4a8a57", "activations": "#d0923a", "autocast-copies": "#d9c680", "backward-temporaries": "#b85a33",
    "optimizer-temporaries": "#a14370", "workspace": "#8a8178", "rounding": "#b3b1ab", "cached": "#9aa0a6", "context": "#646b73",
}
TONES = {"fits": "#2e7d4f", "does not fit": "#b3261e"}
CLOSE = "#9a6700"


class Estimate(dict[str, Any]):
    """What `headroom estimate --json` prints; sizes are bytes."""

    @property
    def fits(self) -> Optional[bool]:
        """None where the GPU's memory is not known."""
        found: Optional[bool] = self["fits"]
        return found

    @property
    def allocated(self) -> Band:
        found: Band = self["allocated"]
        return found

    @property
    def reserved(self) -> Band:
        found: Band = self["reserved"]
        return found

    @property
    def device(self) -> Band:
        """As nvidia-smi shows it."""
        found: Band = self["device"]
        return found

    @property
    def usable(self) -> Optional[int]:
        found: Optional[int] = self["usable"]
        return found

    @property
    def verdict(self) -> str:
        """`needs 10.20 GiB (9.90 GiB to 10.60 GiB) of 23.50 GiB: fits`."""
        device, usable = self.device, self.usable
        needs = f"needs {gib(device['expected'])} ({gib(device['low'])} to {gib(device['high'])})"
        return f"{needs} of {gib(usable)}: {self.words}" if usable else f"{needs}; the GPU's memory is not known"

    @property
    def words(self) -> str:
        """How sure the verdict is, as the program says it."""
        device, usable = self.device, self.usable
        if not usable:
            return ""
        low, expected, high = (device[end] + self.get("growth", 0) for end in ("low", "expected", "high"))
        if expected <= usable:
            return "fits" if high <= usable else "probably fits"
        return "probably does not fit" if low <= usable else "does not fit"

    def parts(self) -> dict[str, int]:
        """What is on the GPU at the peak, in the order of the bar."""
        cached = self.reserved["expected"] - self.allocated["expected"]
        context = self.device["expected"] - self.reserved["expected"]
        held = {**self["breakdown"], "cached": cached, "context": context}
        return {name: held[name] for name in COLOURS if held.get(name, 0) > 0}

    def _repr_html_(self) -> str:
        return f'<div style="font-family:system-ui,sans-serif;max-width:720px">{title(self)}{bar(self)}{legend(self)}{assumed(self)}</div>'


class Fit(dict[str, Any]):
    """The largest micro-batch that fits (`headroom fit --json`)."""

    @property
    def micro_batch(self) -> Optional[int]:
        found: Optional[int] = self["micro_batch"]
        return found

    @property
    def estimate(self) -> Estimate:
        return Estimate(self["estimate"])

    def _repr_html_(self) -> str:
        found = self.micro_batch
        said = f"largest micro-batch {found}" if found else "no micro-batch fits; one sample:"
        return f"<div><strong>{said}</strong></div>{self.estimate._repr_html_()}"


def gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


def title(answer: Estimate) -> str:
    colour = TONES.get(answer.words, CLOSE)
    said = escape(answer.verdict)
    if answer.words:
        said = said.removesuffix(answer.words) + f'<strong style="color:{colour}">{answer.words}</strong>'
    run = f"{answer['model']} on {answer['gpus']} × {answer['gpu']}" if answer.get("model") else ""
    return f"<div><strong>{escape(run)}</strong> {said}</div>"


def bar(answer: Estimate) -> str:
    """The GPU's memory as a picture, as wide as it or as what is needed."""
    needed, usable = answer.device["expected"], answer.usable or answer.device["expected"]
    whole = max(needed, usable, 1)

    def percent(size: int) -> str:
        return f"{100 * size / whole:.3f}%"

    drawn, start = [], 0
    for name, size in answer.parts().items():
        about = f"<title>{name.replace('-', ' ')}: {gib(size)}</title>"
        drawn.append(f'<rect x="{percent(start)}" width="{percent(size)}" height="24" fill="{COLOURS[name]}">{about}</rect>')
        start += size
    limit = f'<rect x="{percent(usable)}" y="-3" width="2" height="30" fill="#b3261e"/>' if needed > usable else ""
    return (
        f'<svg role="img" aria-label="{escape(answer.verdict)}" width="100%" height="30" style="margin:6px 0;overflow:visible">'
        f'<rect width="{percent(usable)}" height="24" fill="#8884"/>{"".join(drawn)}{limit}</svg>'
    )


def legend(answer: Estimate) -> str:
    parts = (
        f'<span style="margin-right:12px;white-space:nowrap"><span style="color:{COLOURS[name]}">■</span> {name.replace("-", " ")} {gib(size)}</span>'
        for name, size in answer.parts().items()
    )
    return f'<div style="font-size:smaller">{"".join(parts)}</div>'


def assumed(answer: Estimate) -> str:
    rows = [f"{escape(one['setting'])} {escape(one['value'])}" for one in answer.get("assumptions", [])]
    if not rows:
        return ""
    return f'<details style="font-size:smaller"><summary>{len(rows)} values assumed</summary>{", ".join(rows)}</details>'
