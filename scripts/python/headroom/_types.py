"""The answers' types. Sizes are bytes."""

from __future__ import annotations

from typing import Any, Optional, TypedDict


class Band(TypedDict):
    low: int
    expected: int
    high: int


class Doubt(TypedDict):
    """One source of the range of `device`, and what would settle it."""

    about: str
    below: int
    above: int
    settled_by: str


class Estimate(TypedDict, total=False):
    """What `headroom estimate --json` prints; a few more keys are in it."""

    allocated: Band
    reserved: Band
    device: Band
    phase: str
    phases: dict[str, int]
    breakdown: dict[str, int]
    modules: dict[str, int]
    static: int
    parameters: int
    trainable: int
    flops: float
    usable: Optional[int]
    fits: Optional[bool]
    growth: int
    host: dict[str, Any]
    disk: dict[str, Any]
    doubts: list[Doubt]
    not_modelled: list[str]
    warnings: list[str]


class Measured(TypedDict):
    """What PyTorch counted up to the end of a step."""

    step: int
    allocated: int
    reserved: int
