"""What TRL's trainers train for, as fields of the scenario, read from the trainer itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Optional

from ._program import Refused

# By the name of the trainer's class or of one that it derives from.
OBJECTIVES = {
    "DPOTrainer": "dpo",
    "KTOTrainer": "kto",
    "ORPOTrainer": "orpo",
    "CPOTrainer": "cpo",
    "RewardTrainer": "reward",
    "GRPOTrainer": "grpo",
    "RLOOTrainer": "rloo",
}
# A row for the chosen and one for the rejected answer.
PAIRS = {"dpo", "orpo", "cpo", "simpo", "reward"}
SAMPLED = {"grpo", "rloo"}


def is_trl(trainer: Any) -> bool:
    return any(kind.__module__.partition(".")[0] == "trl" for kind in type(trainer).__mro__)


def objective(trainer: Any) -> Optional[str]:
    """The task of one of TRL's trainers; None for supervised fine-tuning, whose loss is read from its arguments."""
    for kind in type(trainer).__mro__:
        if kind.__module__.partition(".")[0] != "trl":
            continue
        if kind.__name__ == "SFTTrainer":
            return None
        found = OBJECTIVES.get(kind.__name__)
        if found == "cpo" and plain(trainer.args, "loss_type") == "simpo":
            return "simpo"
        if found:
            return found
    raise Refused(f"{type(trainer).__name__} of TRL is not modelled: describe it to gpu_headroom.estimate (task.objective)")


def plain(args: Any, name: str) -> Any:
    """An argument's value, of an enumeration its text."""
    value = getattr(args, name, None)
    return getattr(value, "value", value)


def task(trainer: Any, found: str, model: Any) -> dict[str, Any]:
    """The fields of `task`."""
    args = trainer.args
    # The trainer's default is that of supervised fine-tuning; a task has its own.
    fields: dict[str, Any] = {"task.objective": found, "training.loss": "library"}
    if found != "reward":
        fields["task.head"] = head(args, model)
    if found in ("dpo", "kto", *SAMPLED):
        fields.update(reference(trainer, found, model))
    if found in SAMPLED:
        fields.update(sampling(args))
    return fields


def head(args: Any, model: Any) -> str:
    """How log-probabilities are computed."""
    if plain(args, "use_liger_loss") or plain(args, "use_liger_kernel"):
        return "liger"
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    code = getattr(getattr(getattr(base, "forward", None), "__func__", None), "__code__", None)
    # TRL replaces forward by one that makes no logits where it is asked to.
    return "fused" if "fused_lm_head" in getattr(code, "co_varnames", ()) else "logits"


def reference(trainer: Any, found: str, model: Any) -> dict[str, Any]:
    """Where the reference's log-probabilities come from."""
    copy, ahead = getattr(trainer, "ref_model", None), bool(plain(trainer.args, "precompute_ref_log_probs"))
    if copy is not None:
        fields = {"task.reference": "precomputed" if ahead else "copy"}
        own, other = dtype(model), dtype(copy)
        if other != own and other in ("float32", "bfloat16"):
            fields["task.reference_type"] = "fp32" if other == "float32" else "bf16"
        return fields
    if ahead:
        return {"task.reference": "precomputed-by-itself"}
    without = found in SAMPLED and not plain(trainer.args, "beta")
    adapted = bool(getattr(model, "peft_config", None))
    return {"task.reference": "adapters-off" if adapted and not without else "none"}


def dtype(model: Any) -> Optional[str]:
    """The type of most of a model's weights."""
    sizes: dict[str, int] = {}
    for name, weight in model.named_parameters():
        if weight.is_floating_point() and "lora_" not in name:
            kind = str(weight.dtype).removeprefix("torch.")
            sizes[kind] = sizes.get(kind, 0) + weight.numel()
    return max(sizes, key=lambda kind: sizes[kind]) if sizes else None


def sampling(args: Any) -> dict[str, Any]:
    """How completions are sampled."""
    fields: dict[str, Any] = {
        "task.generations": plain(args, "num_generations"),
        "task.completion": plain(args, "max_completion_length"),
        "task.iterations": plain(args, "num_iterations"),
        "task.generation_batches": plain(args, "steps_per_generation"),
        "task.prompt": plain(args, "max_prompt_length"),
    }
    if plain(args, "cast_lm_head_to_fp32"):
        fields["task.fp32_head"] = "on"
    if plain(args, "use_vllm"):
        here = plain(args, "vllm_mode") == "colocate"
        fields["task.sampler"] = "vllm" if here else "vllm-server"
        if here:
            fields["task.vllm_share"] = plain(args, "vllm_gpu_memory_utilization")
            fields["task.vllm_sleep"] = bool(plain(args, "vllm_enable_sleep_mode"))
    elif plain(args, "cache_implementation") == "static":
        fields["task.sampler"] = "generate-static"
    return {name: value for name, value in fields.items() if value is not None}


def batch(trainer: Any, found: str, inputs: Any) -> dict[str, Any]:
    """The sizes of a batch. A preference pair is one sample, whatever its rows are called in this version."""
    rows = plain(trainer.args, "per_device_train_batch_size")
    if found in SAMPLED:
        return {"data.micro_batch": rows, **prompts(trainer, inputs)}
    length, mask = 0, None
    if isinstance(inputs, Mapping):
        sizes = {name: int(one.shape[1]) for name, one in inputs.items() if name.endswith("input_ids") and len(getattr(one, "shape", ())) == 2}
        # Once a prompt stood beside its answers, which then had it not.
        beside = sizes.pop("prompt_input_ids", 0)
        whole = {"input_ids", "chosen_input_ids", "rejected_input_ids"} & sizes.keys() and "chosen_labels" in inputs or found in ("kto", "reward")
        length = max(sizes.values(), default=0) + (0 if whole else beside)
        mask = next((inputs[name] for name in ("attention_mask", "chosen_attention_mask") if name in inputs), None)
    length = length or plain(trainer.args, "max_length") or 0
    if not length:
        raise Refused("the batch has no input_ids of two dimensions: set data.sequence")
    fields = {"data.micro_batch": rows, "data.sequence": length}
    if mask is not None:
        fields["data.padding_mask"] = not bool(mask.all())
    return fields


def prompts(trainer: Any, inputs: Any) -> dict[str, Any]:
    """The longest prompt of a batch, where the trainer does not cut them to a length."""
    if plain(trainer.args, "max_prompt_length"):
        return {}
    given = [one.get("prompt") for one in inputs if isinstance(one, Mapping)] if isinstance(inputs, (list, tuple)) else []
    tokenizer = getattr(trainer, "processing_class", None)
    lengths = [len(tokens(tokenizer, prompt)) for prompt in given if prompt is not None and tokenizer is not None]
    if not lengths:
        raise Refused("the length of prompts is not known: set task.prompt")
    return {"task.prompt": max(1, *lengths)}


def tokens(tokenizer: Any, prompt: Any) -> Any:
    if isinstance(prompt, str):
        return tokenizer(prompt)["input_ids"]
    found = tokenizer.apply_chat_template(prompt, add_generation_prompt=True, tokenize=True)
    return found["input_ids"] if isinstance(found, Mapping) else found
