"""PEFT's adapters and quantized weights, as fields of the scenario, read from a model's configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._program import Refused

# PEFT's types by the scenario's name, with the attribute that is the rank.
METHODS = {
    "lora": ("lora", "r"), "adalora": ("adalora", "init_r"), "vera": ("vera", "r"), "randlora": ("randlora", "r"), "loha": ("loha", "r"),
    "lokr": ("lokr", "r"), "miss": ("miss", "r"), "road": ("road", ""), "shira": ("shira", "r"), "delora": ("delora", "r"),
    "hira": ("hira", "r"), "gralora": ("gralora", "r"), "pvera": ("pvera", "r"), "vblora": ("vblora", "r"), "osf": ("osf", "effective_rank"),
    "fourierft": ("fourierft", "n_frequency"), "waveft": ("waveft", "n_frequency"), "oft": ("oft", ""), "boft": ("boft", ""),
    "c3a": ("c3a", ""), "ia3": ("ia3", ""), "ln_tuning": ("ln", ""), "prefix_tuning": ("prefix", "num_virtual_tokens"),
}
# Prompts that are learned instead.
PROMPTS = {"prompt_tuning", "p_tuning"}
# What changes which parameters there are, and has no field.
UNKNOWN = ("layers_to_transform", "rank_pattern", "target_parameters", "trainable_token_indices", "layer_replication", "megatron_config")
BLOCKS = {"oft": "oft_block_size", "boft": "boft_block_size", "c3a": "block_size"}


def adapters(model: Any) -> dict[str, Any]:
    """The fields of `training.lora`, or of learned prompts; none without adapters."""
    configs = getattr(model, "peft_config", None)
    if not isinstance(configs, Mapping) or not configs:
        return {}
    if len(configs) > 1:
        raise Refused("several adapters in one model are not modelled")
    config = next(iter(configs.values()))
    kind = str(getattr(config.peft_type, "value", config.peft_type)).lower()
    if kind in PROMPTS:
        fields: dict[str, Any] = {"training.prompt_tokens": config.num_virtual_tokens}
        if kind == "p_tuning":
            fields["training.prompt_hidden"] = config.encoder_hidden_size
        return fields
    if kind not in METHODS:
        raise Refused(f"PEFT's {kind} is not modelled")
    for name in UNKNOWN:
        if getattr(config, name, None):
            raise Refused(f"{name} of {type(config).__name__} is not modelled")
    method, rank = METHODS[kind]
    if getattr(config, "use_dora", False):
        method = "dora"
    given = {
        "method": method if method != "lora" else None,
        "rank": getattr(config, rank, None) if rank else None,
        "block": getattr(config, BLOCKS[kind], None) if kind in BLOCKS else None,
        "dropout": next((getattr(config, name) for name in ("lora_dropout", "vera_dropout", "module_dropout") if hasattr(config, name)), None),
        "targets": listed(getattr(config, "target_modules", None)),
        "exclude": listed(getattr(config, "exclude_modules", None)),
        "modules_to_save": listed(getattr(config, "modules_to_save", None)),
    }
    own = [weight for name, weight in model.named_parameters() if ADAPTED in name]
    if own:
        given["fp32_adapters"] = all(str(weight.dtype) == "torch.float32" for weight in own)
    fields = {f"training.lora.{name}": value for name, value in given.items() if value not in (None, [])}
    return {"training.lora": True, **fields}


ADAPTED = "lora_"


def listed(names: Any) -> Any:
    """Names of modules in an order of their own; a text is an expression, which PEFT matches with whole paths."""
    if isinstance(names, str):
        if names != "all-linear":
            raise Refused(f"target_modules is the expression {names!r}: give the names of modules (training.lora.targets)")
        return None
    return sorted(names) if names else None


def quantized(model: Any) -> dict[str, Any]:
    """The field of a frozen base that is stored in few bits."""
    config = getattr(model.config, "quantization_config", None)
    if config is None:
        return {}
    about = config if isinstance(config, Mapping) else config.to_dict()
    method = str(getattr(about.get("quant_method"), "value", about.get("quant_method")) or "bitsandbytes").lower()
    bits = about.get("bits", about.get("nbits"))
    found = None
    if method.startswith("bitsandbytes"):
        if about.get("load_in_8bit"):
            found = "int8"
        elif about.get("load_in_4bit"):
            found = "nf4-double" if about.get("bnb_4bit_use_double_quant") else "nf4"
    elif method in ("gptq", "awq") and bits in (4, None):
        found = method
    elif method == "hqq":
        found = "hqq"
    elif method == "aqlm":
        found = "aqlm"
    if found is None:
        raise Refused(f"weights quantized by {method} are not modelled")
    return {"training.quantization": found}
