"""Trains a causal language model as train.yaml says: torchrun --standalone --nproc-per-node N train.py train.yaml

Written by Headroom, so that what runs is what was computed. Without a train_file it trains on random tokens, which
takes the same memory. At the end it prints the peak that PyTorch measured beside the one that was predicted.
"""

import contextlib
import json
import os
import sys

import torch
import yaml
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.optimization import Adafactor

WEIGHTS = {"fp64": torch.float64, "bf16": torch.bfloat16, "amp-bf16-on-bf16": torch.bfloat16, "fp16": torch.float16}
TYPES = {"own": None, "bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
AUTOCAST = {"amp-bf16": torch.bfloat16, "amp-bf16-on-bf16": torch.bfloat16, "amp-fp16": torch.float16}
DIMENSIONS = {
    "layers": "num_hidden_layers", "hidden": "hidden_size", "heads": "num_attention_heads",
    "kv": "num_key_value_heads", "ffn": "intermediate_size", "vocab": "vocab_size",
    "ctx": "max_position_embeddings", "tied": "tie_word_embeddings", "window": "sliding_window",
}


def from_bitsandbytes(name, **options):
    """An optimizer of that library, which is asked for only where it is used."""
    def make(params, lr):
        import bitsandbytes

        return getattr(bitsandbytes.optim, name)(params, lr=lr, **options)

    return make


OPTIMIZERS = {
    "adamw": lambda params, lr: torch.optim.AdamW(params, lr=lr),
    "adamw-fused": lambda params, lr: torch.optim.AdamW(params, lr=lr, fused=True),
    "adamw-loop": lambda params, lr: torch.optim.AdamW(params, lr=lr, foreach=False),
    "sgd": lambda params, lr: torch.optim.SGD(params, lr=lr),
    "sgd-momentum": lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9),
    "adafactor": lambda params, lr: torch.optim.Adafactor(params, lr=lr),
    "adafactor-hf": lambda params, lr: Adafactor(params, lr=lr, relative_step=False, scale_parameter=False),
    "adagrad": lambda params, lr: torch.optim.Adagrad(params, lr=lr),
    "rmsprop": lambda params, lr: torch.optim.RMSprop(params, lr=lr),
    "adamw-8bit": from_bitsandbytes("AdamW8bit"),
    "adamw-paged": from_bitsandbytes("PagedAdamW32bit"),
    "adamw-paged-8bit": from_bitsandbytes("PagedAdamW8bit"),
}


def device():
    """This process's GPU, or the processor."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")


def build_model(cfg):
    config = AutoConfig.from_pretrained(cfg["model"])
    config.use_cache = cfg["use_cache"]
    for name, size in cfg["dims"].items():
        key = "n_inner" if name == "ffn" and hasattr(config, "n_inner") else DIMENSIONS.get(name, name)
        setattr(config, key, bool(size) if name == "tied" else size)
    kinds = dict(dtype=WEIGHTS.get(cfg["precision"], torch.float32), attn_implementation=cfg["attention"])
    if cfg["quantization"] != "none":
        from transformers import BitsAndBytesConfig

        compute = AUTOCAST.get(cfg["precision"], kinds["dtype"])
        kinds["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=compute,
            bnb_4bit_use_double_quant=cfg["quantization"] == "nf4-double",
        )
        kinds["device_map"] = {"": device()}
    if cfg["dims"]:
        model = AutoModelForCausalLM.from_config(config, **kinds)
    else:
        model = AutoModelForCausalLM.from_pretrained(cfg["model"], config=config, **kinds)
    if not cfg["dropout"]:
        for module in model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
            elif isinstance(getattr(module, "attention_dropout", None), float):
                module.attention_dropout = 0.0
    for name, weight in model.named_parameters():
        left_out = cfg["train_only"] and not any(part in name for part in cfg["train_only"])
        if left_out or any(part in name for part in cfg["freeze"]):
            weight.requires_grad_(False)
    if cfg["gradient_checkpointing"]:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    if cfg["lora"]:
        from peft import LoraConfig, get_peft_model

        lora = cfg["lora"]
        adapters = LoraConfig(
            r=lora["rank"], lora_alpha=2 * lora["rank"], lora_dropout=lora["dropout"], task_type="CAUSAL_LM",
            target_modules=lora["targets"], exclude_modules=lora["exclude"] or None,
        )
        model.enable_input_require_grads()
        model = get_peft_model(model, adapters, autocast_adapter_dtype=lora["fp32_adapters"])
    return model.train()


def shard(cfg, model, here, world):
    """FSDP 2: `fully_shard` on the units of train.yaml's policy, and on the model around them."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    fsdp = cfg["fsdp"]
    groups = (fsdp["replicas"], world // fsdp["replicas"])
    mesh = init_device_mesh(here.type, groups, mesh_dim_names=("replicate", "shard"))
    kinds = dict(
        mesh=mesh if groups[0] > 1 else mesh["shard"],
        mp_policy=MixedPrecisionPolicy(TYPES[fsdp["param_dtype"]], TYPES[fsdp["reduce_dtype"]]),
        offload_policy=CPUOffloadPolicy() if fsdp["cpu_offload"] else OffloadPolicy(),
    )
    inner = model.get_base_model() if hasattr(model, "get_base_model") else model
    names = inner._no_split_modules or []
    layers = [module for module in inner.modules() if type(module).__name__ in names]
    if not layers and fsdp["wrap"] != "root":
        sys.exit(f"{type(inner).__name__} names no layers to shard by: set fsdp.wrap to root")
    reshard = fsdp["reshard_after_forward"]
    if fsdp["wrap"] != "root":
        for layer in layers:
            fully_shard(layer, reshard_after_forward=reshard, **kinds)
    embedding, head = inner.get_input_embeddings(), inner.get_output_embeddings()
    if fsdp["wrap"] == "layers-ends":
        tied = head.weight is embedding.weight
        decoder = inner.base_model
        norms = [getattr(decoder, name) for name in ("norm", "ln_f", "final_layer_norm") if hasattr(decoder, name)]
        if not tied:
            fully_shard(embedding, reshard_after_forward=reshard, **kinds)
        fully_shard([*norms, embedding if tied else head], reshard_after_forward=False, **kinds)
    elif fsdp["wrap"] == "layers-embedding":
        fully_shard(embedding, reshard_after_forward=reshard, **kinds)
    fully_shard(model, **kinds, **({"reshard_after_forward": bool(reshard)} if fsdp["reshard_root"] else {}))
    for at, layer in enumerate(layers if fsdp["wrap"] != "root" else []):
        if fsdp["prefetch_forward"]:
            layer.set_modules_to_forward_prefetch(layers[at + 1:at + 1 + fsdp["prefetch_forward"]])
        if fsdp["prefetch_backward"]:
            layer.set_modules_to_backward_prefetch(layers[max(0, at - fsdp["prefetch_backward"]):at][::-1])
    return model


def batches(cfg, vocabulary, rank, world):
    """Micro-batches without end: input ids and, where asked for, a mask; always padded to max_seq_len."""
    rows, length = cfg["micro_batch_size"], cfg["max_seq_len"]
    random = torch.Generator().manual_seed(rank)
    texts = []
    if cfg["train_file"]:
        tokenizer = AutoTokenizer.from_pretrained(cfg["model"])
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        with open(cfg["train_file"], encoding="utf-8") as lines:
            texts = [json.loads(line)["text"] for line in lines if line.strip()][rank::world]
    while True:
        if texts:
            texts = texts[rows:] + texts[:rows] if len(texts) > rows else texts * rows
            padded = dict(padding="max_length", truncation=True, max_length=length, return_tensors="pt")
            batch = tokenizer(texts[:rows], **padded)
            ids, mask = batch["input_ids"], batch["attention_mask"]
        else:
            ids = torch.randint(vocabulary, (rows, length), generator=random)
            mask = torch.ones_like(ids)
            if cfg["padding_mask"]:
                mask[:, length - length // 8:] = 0
        inputs = {"input_ids": ids, "labels": ids.masked_fill(mask == 0, -100)}
        if cfg["padding_mask"]:
            inputs["attention_mask"] = mask
        yield inputs


class Batches(torch.utils.data.IterableDataset):
    """The same for a DataLoader, which may make them in other processes."""

    def __init__(self, *of):
        self.of = of

    def __iter__(self):
        return batches(*self.of)


def loader(cfg, vocabulary, rank, world):
    workers = cfg["num_workers"]
    return torch.utils.data.DataLoader(
        Batches(cfg, vocabulary, rank, world), batch_size=None, num_workers=workers, pin_memory=cfg["pin_memory"],
        prefetch_factor=cfg["prefetch_factor"] if workers else None,
    )


def is_due(step, every):
    return every > 0 and (step + 1) % every == 0


@torch.no_grad()
def evaluate(cfg, model, context, here):
    """The loss of one evaluation batch of random tokens."""
    model.eval()
    inputs = next(batches(dict(cfg, micro_batch_size=cfg["eval_batch_size"], train_file=None), cfg["vocabulary"], 0, 1))
    with context():
        loss = model(**{name: tensor.to(here) for name, tensor in inputs.items()}).loss
    model.train()
    return round(loss.item(), 4)


def save(cfg, model, optimizer, step, rank):
    """Weights and states of this step, which the first process gathers; the oldest go where only some are kept."""
    if cfg["fsdp"]:
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

        weights, states = get_state_dict(
            model, optimizer, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    else:
        if cfg["partition_optimizer"]:
            optimizer.consolidate_state_dict(0)
        weights, states = model.state_dict(), optimizer.state_dict() if rank == 0 else None
    if rank != 0:
        return
    state = {"step": step + 1, "model": weights, "optimizer": states}
    torch.save(state, f"checkpoint-{step + 1}.pt")
    old = step + 1 - cfg["save_every"] * cfg["save_keep"]
    if cfg["save_keep"] and os.path.exists(f"checkpoint-{old}.pt"):
        os.remove(f"checkpoint-{old}.pt")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        cfg = yaml.safe_load(file)
    rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world != cfg["world_size"]:
        sys.exit(f"world_size is {cfg['world_size']} in {sys.argv[1]}, but {world} processes were started")
    here = device()
    cuda = here.type == "cuda"
    if cuda:
        torch.cuda.set_device(here)
        torch.cuda.set_per_process_memory_fraction(cfg["memory_fraction"], here)
    if world > 1:
        torch.distributed.init_process_group("nccl" if cuda else "gloo")
    model = build_model(cfg)
    parameters = sum(weight.numel() for weight in model.parameters())
    if cfg["fsdp"]:
        model = shard(cfg, model, here, world)
    elif cfg["quantization"] == "none":
        model = model.to(here)
    whole, cfg["vocabulary"] = model, model.config.vocab_size
    if rank == 0 and world > 1:
        local = (getattr(weight, "to_local", lambda weight=weight: weight)() for weight in model.parameters())
        print(json.dumps({"parameters": parameters, "held": sum(weight.numel() for weight in local)}), flush=True)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    resting = torch.device("cpu") if cfg["ema_on_host"] else here
    average = [weight.detach().to(resting, copy=True) for weight in model.parameters()] if cfg["ema"] else []
    if cfg["partition_optimizer"]:
        optimizer = ZeroRedundancyOptimizer(trained, OPTIMIZERS[cfg["optimizer"]], lr=cfg["learning_rate"])
    else:
        optimizer = OPTIMIZERS[cfg["optimizer"]](trained, cfg["learning_rate"])
    scaler = torch.amp.GradScaler(here.type, enabled=cfg["precision"] == "amp-fp16")
    if world > 1 and not cfg["fsdp"]:
        model = DistributedDataParallel(
            model, device_ids=[here.index] if cuda else None, bucket_cap_mb=cfg["bucket_cap_mb"],
            gradient_as_bucket_view=cfg["gradient_as_bucket_view"],
        )
    # FSDP's policy casts by itself.
    autocast = None if cfg["fsdp"] and TYPES[cfg["fsdp"]["param_dtype"]] else AUTOCAST.get(cfg["precision"])

    def syncing(last):
        """Gradients are reduced after the last micro-batch alone, unless train.yaml says after each."""
        last = last or cfg["sync_each"]
        if cfg["fsdp"]:
            model.set_requires_gradient_sync(last)
        return contextlib.nullcontext() if last or world == 1 or cfg["fsdp"] else model.no_sync()

    def context():
        return torch.autocast(here.type, dtype=autocast, enabled=autocast is not None)

    data, accumulation = iter(loader(cfg, cfg["vocabulary"], rank, world)), cfg["gradient_accumulation_steps"]
    for step in range(cfg["max_steps"]):
        for micro in range(accumulation):
            inputs = {name: tensor.to(here) for name, tensor in next(data).items()}
            last = micro + 1 == accumulation
            with syncing(last):
                with context():
                    outputs = model(**inputs)
                    loss = outputs.loss / accumulation
                if not cfg["keep_outputs"]:
                    del outputs
                scaler.scale(loss).backward()
        if cfg["clip_grad_norm"] is not None:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(trained, cfg["clip_grad_norm"])
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=cfg["set_to_none"])
        for kept, weight in zip(average, model.parameters()):
            kept.lerp_(weight.detach().to(kept.device), 0.001)
        if rank == 0:
            print(json.dumps({"step": step + 1, "loss": round(loss.item() * accumulation, 4)}), flush=True)
        last = step + 1 == cfg["max_steps"]
        if cfg["eval_batch_size"] and (is_due(step, cfg["eval_every"]) or last and not cfg["eval_every"]):
            print(json.dumps({"step": step + 1, "evaluated": evaluate(cfg, whole, context, here)}), flush=True)
        if is_due(step, cfg["save_every"]) and (rank == 0 or cfg["fsdp"] or cfg["partition_optimizer"]):
            save(cfg, whole, optimizer, step, rank)
    if rank == 0 and cuda:
        print(json.dumps({
            "max_memory_allocated": torch.cuda.max_memory_allocated(),
            "max_memory_reserved": torch.cuda.max_memory_reserved(),
            "predicted_allocated": cfg["predicted_allocated"],
        }), flush=True)
    if world > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
