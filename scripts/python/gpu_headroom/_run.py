"""A training run as a trainer holds it, in the words that `headroom import` reads, and the plan that comes of it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from ._answers import Estimate
from ._estimate import changes, estimate
from ._program import Refused, ask

UNKNOWN_MODEL = "Record it with PyTorch on any machine (`headroom record` prints how), and estimate the recording."


@dataclass
class Run:
    """What is known of a run."""

    config: Mapping[str, Any]
    """The model's config.json."""
    said: Mapping[str, Any]
    """What a training program's file would say of it."""
    software: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    """Fields of the scenario by their paths."""
    longest: int = 0
    """The length that batches are cut to, where it is known."""
    weights: Optional[int] = None
    trained: Optional[int] = None
    """How many parameters the model has and trains; None where its tensors do not tell."""
    notes: list[str] = field(default_factory=list)


@dataclass
class Plan:
    """A run's scenario, and what it needs."""

    scenario: Mapping[str, Any]
    settings: dict[str, Any]
    estimate: Estimate
    notes: list[str]

    def link(self) -> str:
        """The scenario as a link's fragment, which the page opens."""
        answer, _ = ask("link", "-", *changes(self.settings), text=json.dumps(self.scenario))
        return str(answer["link"])


def plan(run: Run, own: Mapping[str, Any]) -> Plan:
    """Asks the program. What the caller sets himself (`own`) comes last."""
    model, notes = ask("import", "-", text=json.dumps(run.config, default=str))
    # The software comes first: it brings defaults, over which what the trainer says is laid.
    software = dict(run.software)
    try:
        link, _ = ask("link", "-", *changes(software), text=json.dumps(model))
    except Refused as refusal:
        unknown = [path for path in software if f"{path} is `" in str(refusal)]
        if not unknown:
            raise
        run.notes += [f"{path} {software.pop(path)} is not known: the newest known is taken" for path in unknown]
        link, _ = ask("link", "-", *changes(software), text=json.dumps(model))
    scenario, more = ask("import", "-", "--scenario", link["link"], text=json.dumps(run.said, default=str))
    settings = {**run.settings, **own}
    answer = estimate(scenario, **settings)
    differs(run, answer)
    changing = [note for note in [*notes, *more] if "it may change memory" in note]
    return Plan(scenario, settings, answer, [*run.notes, *changing, *answer["warnings"]])


def differs(run: Run, answer: Estimate) -> None:
    """Refuses a plan for another model than the one that is there: their parameters tell."""
    for what, has, planned in (("has", run.weights, answer["parameters"]), ("trains", run.trained, answer["trainable"])):
        if has and abs(planned - has) > 0.01 * has:
            raise Refused(
                f"the model {what} {has:,} parameters, and the network that its configuration describes {planned:,}: "
                f"it is another one. {UNKNOWN_MODEL}"
            )


def model_config(model: Any) -> Optional[Mapping[str, Any]]:
    """The config.json of a model of transformers."""
    config = getattr(model, "config", None)
    write = getattr(config, "to_json_string", None)
    if write is None or not getattr(config, "model_type", ""):
        return None
    # What is not put out takes no memory.
    return {name: value for name, value in json.loads(write(use_diff=False)).items() if value or not name.startswith("output_")}


def weights(model: Any) -> dict[str, Any]:
    """The format of a model's weights and how its attention is computed."""
    sizes: dict[str, int] = {}
    for name, weight in model.named_parameters():
        if weight.is_floating_point() and "lora_" not in name:
            kind = str(weight.dtype).removeprefix("torch.")
            sizes[kind] = sizes.get(kind, 0) + weight.numel()
    given: dict[str, Any] = {"dtype": max(sizes, key=lambda kind: sizes[kind])} if sizes else {}
    config = model.config
    attention = getattr(config, "_attn_implementation", None)
    if attention:
        given["attn_implementation"] = attention
    quantization = getattr(config, "quantization_config", None)
    about = quantization if isinstance(quantization, Mapping) else quantization.to_dict() if quantization is not None else {}
    if about.get("load_in_4bit"):
        given["load_in_4bit"] = True
        for name in ("bnb_4bit_use_double_quant", "bnb_4bit_quant_type"):
            given[name] = about.get(name)
    return given


def head(model: Any) -> str:
    """What stands in the language model's place, by the model's class: `SequenceClassification`, or nothing."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    found = re.search("For(SequenceClassification|TokenClassification|QuestionAnswering|MultipleChoice)$", type(base).__name__)
    return found.group(1) if found else ""


def counts(module: Any) -> tuple[int, int]:
    """How many parameters there are, and how many are trained."""
    every = list(module.parameters())
    return sum(one.numel() for one in every), sum(one.numel() for one in every if one.requires_grad)


def frozen(model: Any) -> list[str]:
    """The modules that are frozen whole, and single frozen parameters, by their paths."""

    def below(module: Any, path: str) -> Iterator[str]:
        every = [weight.requires_grad for weight in module.parameters()]
        if not every or all(every):
            return
        if not any(every):
            # With a dot, so that layer 1 is not layer 10.
            yield f"{path}."
            return
        for name, weight in module.named_parameters(recurse=False):
            if not weight.requires_grad:
                yield f"{path}.{name}" if path else name
        for name, child in module.named_children():
            yield from below(child, f"{path}.{name}" if path else name)

    return list(below(model, ""))


def batch(inputs: Any) -> dict[str, Any]:
    """The sizes of a batch, as fields of the scenario."""
    tensors = dict(inputs) if isinstance(inputs, Mapping) else {}
    if not tensors:
        several = inputs if isinstance(inputs, (list, tuple)) else [inputs]
        tensors = {f"{len(one.shape)}d": one for one in reversed(list(several)) if hasattr(one, "shape")}
    found: dict[str, Any] = {}
    ids = tensors.get("input_ids", tensors.get("2d"))
    images = tensors.get("pixel_values", tensors.get("4d"))
    if ids is not None and len(ids.shape) == 2:
        found = {"data.micro_batch": int(ids.shape[0]), "data.sequence": int(ids.shape[1])}
    elif images is not None and len(images.shape) == 4:
        found = {"data.micro_batch": int(images.shape[0])}
    else:
        raise Refused("the batch has no input_ids of two dimensions and no pixel_values of four: set data.micro_batch and data.sequence")
    mask = tensors.get("attention_mask")
    if mask is not None:
        found["data.padding_mask"] = not bool(mask.all())
    return found


def versions(**packages: str) -> dict[str, str]:
    """The versions of the software that is there, by the scenario's fields; `field` for a package of another name."""
    known = {"torch": "torch", "transformers": "transformers", "peft": "peft", "bitsandbytes": "bitsandbytes", "liger": "liger-kernel"}
    found = {}
    for name, package in {**known, **packages}.items():
        try:
            major, minor = importlib.metadata.version(package).split(".")[:2]
        except (importlib.metadata.PackageNotFoundError, ValueError):
            continue
        # Of a release's year the scenario has the last two digits.
        found[f"stack.{name}"] = f"{int(major) % 2000}.{re.sub('[^0-9].*', '', minor) or 0}"
    return found


def machine(gpus: int) -> dict[str, Any]:
    """The GPU of this process, and how many share the work."""
    found: dict[str, Any] = {"hardware.gpus": gpus}
    local = int(os.environ.get("LOCAL_WORLD_SIZE", gpus) or gpus)
    if gpus > local > 0:
        found["hardware.nodes"] = gpus // local
    import torch  # type: ignore[import-not-found, unused-ignore]

    if torch.cuda.is_available():
        about = torch.cuda.get_device_properties(torch.cuda.current_device())
        found["hardware.memory_mib"] = about.total_memory >> 20
        found["hardware.gpu"] = listed(about.name, about.total_memory)
        if torch.version.cuda:
            found["hardware.capability"] = f"{about.major}.{about.minor}"
    return found


def listed(name: str, total: int) -> str:
    """The catalogue's id of a card by the name that its driver gives it: of those that begin alike, the one as large."""

    def words(text: str) -> list[str]:
        makers = {"nvidia", "geforce", "tesla", "amd", "radeon", "instinct", "graphics", "generation"}
        return [word for word in re.split("[^a-z0-9]+", text.lower()) if word and word not in makers]

    wanted = words(name)

    def alike(gpu: Mapping[str, Any]) -> int:
        pairs = zip(wanted, words(gpu["id"]))
        same = 0
        for mine, other in pairs:
            if mine != other:
                break
            same += 1
        number = any(any(letter.isdigit() for letter in word) for word in wanted[:same])
        return same if number else 0

    gpus = ask("catalog", "gpus")[0]["gpus"]
    best = max((alike(gpu) for gpu in gpus), default=0)
    if best == 0:
        return "-".join(wanted)
    near = [gpu for gpu in gpus if alike(gpu) == best]
    return str(min(near, key=lambda gpu: abs((gpu["usable"] or 0) - total))["id"])
