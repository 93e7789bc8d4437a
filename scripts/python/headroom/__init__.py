"""Headroom in Python: what a PyTorch training run needs of a GPU, before it runs.

    import headroom
    headroom.estimate("llama-8b-lora-24gb", seq=4096)["fits"]
    headroom.check(trainer)          # transformers' Trainer, TRL's SFTTrainer or Lightning's Trainer

The numbers are those of the program `headroom`, which this package brings and runs; nothing is sent anywhere.
"""

from ._estimate import estimate
from ._program import Refused, program
from ._trainers import check
from ._types import Band, Doubt, Estimate, Measured

__all__ = ["Band", "Doubt", "Estimate", "Measured", "Refused", "check", "estimate", "program"]
