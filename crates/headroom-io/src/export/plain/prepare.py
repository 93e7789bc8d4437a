"""What train.yaml changes in a model before it is trained: dropout, frozen weights, checkpoints around layers, adapters."""

import torch
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

WEIGHTS = {"fp64": torch.float64, "bf16": torch.bfloat16, "amp-bf16-on-bf16": torch.bfloat16, "fp16": torch.float16}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-bf16-on-bf16": torch.bfloat16, "amp-fp16": torch.float16}
# What selective checkpointing may keep.
ATTENTION = {
    getattr(torch.ops.aten, name).default
    for name in (
        "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention", "_scaled_dot_product_flash_attention_for_cpu",
    )
}
PRODUCTS = {torch.ops.aten.mm.default}


def prepare(cfg, model, layers, blocks=()):
    """The model as train.yaml wants it. `layers` and `blocks` name the classes of what is checkpointed."""
    if not cfg["dropout"]:
        drop_nothing(model)
    for name, weight in model.named_parameters():
        left_out = cfg["train_only"] and not any(part in name for part in cfg["train_only"])
        if left_out or any(part in name for part in cfg["freeze"]):
            weight.requires_grad_(False)
    if cfg["checkpointing"] not in ("none", "offload"):
        checkpoint_layers(cfg, model, layers, blocks)
    if cfg["channels_last"]:
        model = model.to(memory_format=torch.channels_last)
    if cfg["lora"]:
        model = adapted(cfg, model)
    return model.train()


def drop_nothing(model):
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        for name in ("dropout", "attention_dropout", "activation_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def adapted(cfg, model):
    """PEFT's adapters, over a base that is frozen."""
    from adapters import configuration
    from peft import get_peft_model

    lora = cfg["lora"]
    adapters = configuration(
        lora["method"], lora["rank"], lora["dropout"], lora["block"], lora["targets"],
        "CAUSAL_LM" if cfg["kind"] == "causal" else None, getattr(getattr(model, "config", None), "vocab_size", 0),
        exclude_modules=lora["exclude"], modules_to_save=lora["modules_to_save"],
    )
    if hasattr(model, "enable_input_require_grads"):
        model.enable_input_require_grads()
    return get_peft_model(model, adapters, autocast_adapter_dtype=lora["fp32_adapters"])


def contexts(keep):
    """What a checkpoint keeps beside its inputs: attention, and all or every second of the matrix products."""
    products = {False: 0, True: 0}

    def policy(context, operation, *_, **__):
        kept = operation in ATTENTION
        if operation in PRODUCTS and keep != "keep-attention":
            products[context.is_recompute] += 1
            kept = keep == "keep-matmuls" or products[context.is_recompute] % 2 == 1
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    return create_selective_checkpoint_contexts(policy)


def checkpoint_layers(cfg, model, layers, blocks):
    """Checkpoints every layer by the library's own switch, or the last of each so many, or keeping some results, by hand."""
    keep, every = cfg["checkpointing"], cfg["checkpoint_every"]
    if keep == "layers" and every == 1:
        if hasattr(model, "gradient_checkpointing_enable"):
            return model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        if hasattr(model, "enable_gradient_checkpointing"):
            return model.enable_gradient_checkpointing()
    counted = (
        layer
        for stack in model.modules() if isinstance(stack, (torch.nn.ModuleList, torch.nn.Sequential))
        for at, layer in enumerate(stack) if type(layer).__name__ in layers and (at + 1) % every == 0
    )
    others = (module for module in model.modules() if keep == "layers" and type(module).__name__ in blocks)
    for module in [*counted, *others]:
        recompute(module, keep)


def recompute(module, keep):
    """Puts a checkpoint around a module's forward."""
    forward, options = module.forward, dict(use_reentrant=False)
    if keep != "layers":
        options["context_fn"] = lambda: contexts(keep)
    module.forward = lambda *inputs, **named: (
        checkpoint(forward, *inputs, **options, **named) if torch.is_grad_enabled() and module.training
        else forward(*inputs, **named)
    )
