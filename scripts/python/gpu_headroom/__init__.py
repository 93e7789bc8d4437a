"""Headroom in Python: what a PyTorch training run needs of a GPU, before it runs.

    import gpu_headroom as headroom
    headroom.estimate("llama-3.1-8b", lora=True, gpu="rtx-4090")["fits"]
    headroom.check(trainer)          # a Trainer of transformers, one of TRL's or Lightning's

The numbers are those of the program `headroom`, which this package brings and runs; nothing is sent anywhere.
"""

from ._answers import Estimate, Fit
from ._estimate import doctor, estimate, fit, layout, plan, read
from ._program import Refused, program
from ._trainers import check
from ._types import Band, Doubt, Measured
from ._version import __version__

__all__ = [
    "Band", "Doubt", "Estimate", "Fit", "Measured", "Refused", "__version__",
    "check", "doctor", "estimate", "fit", "layout", "plan", "program", "read",
]
