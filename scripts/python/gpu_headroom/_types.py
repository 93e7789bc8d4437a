"""The types of answers. Sizes are bytes."""

from __future__ import annotations

from typing import TypedDict


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


class Measured(TypedDict):
    """What PyTorch counted up to the end of a step."""

    step: int
    allocated: int
    reserved: int
