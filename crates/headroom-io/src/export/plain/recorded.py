"""The recorded model: made, fed and judged by the functions that train.yaml names."""

import importlib
import os
import sys

import torch
from torch.utils._pytree import tree_map

from prepare import WEIGHTS, prepare

# The classes of its layers.
LAYERS = set()


def named(text):
    """What `module:name` names; modules may lie where the run was started, or beside the folder of this file."""
    module, name = text.split(":")
    own = os.path.dirname(os.path.abspath(__file__))
    for folder in (os.getcwd(), os.path.dirname(own)):
        if folder not in sys.path:
            sys.path.append(folder)
    return getattr(importlib.import_module(module), name)


def build(cfg, here):
    LAYERS.update(cfg["layers"])
    model, dtype = named(cfg["build"])(), WEIGHTS.get(cfg["precision"])
    return prepare(cfg, model.to(dtype) if dtype else model, cfg["layers"])


def parts(model):
    """The layers that are sharded one by one; what is around them is the model's own unit."""
    lists = (module for module in model.modules() if isinstance(module, (torch.nn.ModuleList, torch.nn.Sequential)))
    return [layer for each in lists for layer in each if type(layer).__name__ in LAYERS], None, None, []


class Batch:
    """A batch of any shape, which moves as one."""

    def __init__(self, parts):
        self.parts = parts

    def to(self, here):
        return Batch(tree_map(lambda part: part.to(here) if isinstance(part, torch.Tensor) else part, self.parts))


def forward(cfg, model, inputs):
    """The loss, and what else the model returns."""
    batch = inputs["batch"].parts
    if cfg["compute_loss"]:
        return named(cfg["compute_loss"])(model, batch), None
    outputs = model(**batch)
    return outputs.loss, outputs


def batches(cfg, rank, world):
    """Micro-batches without end; floating ones are of the weights' type."""
    make, dtype = named(cfg["make_batch"]), WEIGHTS.get(cfg["precision"])
    cast = lambda part: part.to(dtype) if dtype and isinstance(part, torch.Tensor) and part.is_floating_point() else part
    while True:
        yield {"batch": Batch(tree_map(cast, make(cfg["micro_batch_size"], cfg["max_seq_len"], "cpu")))}
