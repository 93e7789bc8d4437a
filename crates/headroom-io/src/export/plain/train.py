"""Trains the model of model.py as train.yaml says: torchrun --standalone --nproc-per-node N train.py train.yaml

Written by Headroom, so that what runs is what was computed. Without a train_file it trains on random data, which
takes the same memory. Where copies is more than 1, one process, python train.py train.yaml, has all GPUs. At the end it prints the peak that PyTorch measured beside the one that was predicted.
"""

import contextlib
import importlib
import json
import os
import sys

import torch
import yaml
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from model import batches, build, forward
from prepare import AUTOCAST

TYPES = {"own": None, "bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def from_library(module, name, **options):
    """An optimizer of a library that is asked for only where it is used."""
    def make(params, lr):
        return getattr(importlib.import_module(module), name)(params, lr=lr, **options)

    return make


def on_host(params, lr):
    """torchao's: the states and the step are the host's."""
    from torchao.optim import CPUOffloadOptimizer

    return CPUOffloadOptimizer(params, torch.optim.AdamW, lr=lr, fused=True)


OPTIMIZERS = {
    "adamw": lambda params, lr: torch.optim.AdamW(params, lr=lr),
    "adamw-fused": lambda params, lr: torch.optim.AdamW(params, lr=lr, fused=True),
    "adamw-loop": lambda params, lr: torch.optim.AdamW(params, lr=lr, foreach=False),
    "sgd": lambda params, lr: torch.optim.SGD(params, lr=lr),
    "sgd-momentum": lambda params, lr: torch.optim.SGD(params, lr=lr, momentum=0.9),
    "adafactor": lambda params, lr: torch.optim.Adafactor(params, lr=lr),
    "adafactor-hf": from_library(
        "transformers.optimization", "Adafactor", relative_step=False, scale_parameter=False),
    "adagrad": lambda params, lr: torch.optim.Adagrad(params, lr=lr),
    "rmsprop": lambda params, lr: torch.optim.RMSprop(params, lr=lr),
    "adamw-8bit": from_library("bitsandbytes.optim", "AdamW8bit"),
    "adamw-paged": from_library("bitsandbytes.optim", "PagedAdamW32bit"),
    "adamw-paged-8bit": from_library("bitsandbytes.optim", "PagedAdamW8bit"),
    "adamw-8bit-ao": from_library("torchao.optim", "AdamW8bit"),
    "adamw-4bit-ao": from_library("torchao.optim", "AdamW4bit"),
    "adamw-offload": on_host,
}


class InBackward:
    """An optimizer for each weight, which steps as soon as backward has its gradient and lets that go."""

    def __init__(self, weights, make):
        self.each = [make([weight]) for weight in weights]
        for weight, optimizer in zip(weights, self.each):
            weight.register_post_accumulate_grad_hook(lambda _, optimizer=optimizer: self.apply(optimizer))

    @staticmethod
    def apply(optimizer):
        optimizer.step()
        optimizer.zero_grad()

    def step(self):
        """All steps were made in backward."""

    def zero_grad(self, set_to_none=True):
        """And all gradients are gone."""

    def state_dict(self):
        return [optimizer.state_dict() for optimizer in self.each]


def device():
    """This process's GPU, or the processor."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else torch.device("cpu")


def shard(cfg, model, here, world):
    """FSDP 2: `fully_shard` on the units of train.yaml's policy, and on the model around them."""
    from torch.distributed.device_mesh import init_device_mesh
    from model import parts
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    fsdp = cfg["fsdp"]
    groups = (fsdp["replicas"], world // fsdp["replicas"])
    mesh = init_device_mesh(here.type, groups, mesh_dim_names=("replicate", "shard"))
    kinds = dict(
        mesh=mesh if groups[0] > 1 else mesh["shard"],
        mp_policy=MixedPrecisionPolicy(TYPES[fsdp["param_dtype"]], TYPES[fsdp["reduce_dtype"]]),
        offload_policy=CPUOffloadPolicy() if fsdp["cpu_offload"] else OffloadPolicy(),
    )
    layers, embedding, head, norms = parts(model)
    if not layers and fsdp["wrap"] != "root":
        sys.exit(f"{type(model).__name__} names no layers to shard by: set fsdp.wrap to root")
    reshard = fsdp["reshard_after_forward"]
    if fsdp["wrap"] != "root":
        for layer in layers:
            fully_shard(layer, reshard_after_forward=reshard, **kinds)
    if fsdp["wrap"] == "layers-ends":
        tied = head.weight is embedding.weight
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


def compress(cfg, model):
    """DDP's communication hook; PowerSGD begins after as few steps as it can, so that this run shows what it takes."""
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    if cfg["comm_hook"] == "powersgd":
        state = powerSGD_hook.PowerSGDState(
            process_group=None, matrix_approximation_rank=cfg["powersgd_rank"], start_powerSGD_iter=2)
        model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    else:
        model.register_comm_hook(None, getattr(default_hooks, f"{cfg['comm_hook']}_compress_hook"))


class Batches(torch.utils.data.IterableDataset):
    """The same for a DataLoader, which may make them in other processes."""

    def __init__(self, *of):
        self.of = of

    def __iter__(self):
        return batches(*self.of)


def loader(cfg, rank, world):
    workers = cfg["num_workers"]
    of_all = dict(cfg, micro_batch_size=cfg["micro_batch_size"] * cfg["copies"])
    return torch.utils.data.DataLoader(
        Batches(of_all, rank, world), batch_size=None, num_workers=workers, pin_memory=cfg["pin_memory"],
        prefetch_factor=cfg["prefetch_factor"] if workers else None,
    )


def is_due(step, every):
    return every > 0 and (step + 1) % every == 0


@torch.no_grad()
def evaluate(cfg, model, context, here):
    """The loss of one evaluation batch of random data."""
    model.eval()
    inputs = next(batches(dict(cfg, micro_batch_size=cfg["eval_batch_size"], train_file=None), 0, 1))
    with context():
        loss, _ = forward(cfg, model, {name: tensor.to(here) for name, tensor in inputs.items()})
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
    model = build(cfg, here)
    parameters = sum(weight.numel() for weight in model.parameters())
    if cfg["fsdp"]:
        model = shard(cfg, model, here, world)
    elif cfg["quantization"] == "none":
        model = model.to(here)
    whole = model
    if rank == 0 and world > 1:
        local = (getattr(weight, "to_local", lambda weight=weight: weight)() for weight in model.parameters())
        print(json.dumps({"parameters": parameters, "held": sum(weight.numel() for weight in local)}), flush=True)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    resting = torch.device("cpu") if cfg["ema_on_host"] else here
    average = [weight.detach().to(resting, copy=True) for weight in model.parameters()] if cfg["ema"] else []
    if cfg["optimizer_in_backward"]:
        optimizer = InBackward(trained, lambda weights: OPTIMIZERS[cfg["optimizer"]](weights, cfg["learning_rate"]))
    elif cfg["partition_optimizer"]:
        optimizer = ZeroRedundancyOptimizer(trained, OPTIMIZERS[cfg["optimizer"]], lr=cfg["learning_rate"])
    else:
        optimizer = OPTIMIZERS[cfg["optimizer"]](trained, cfg["learning_rate"])
    if cfg["compile"] == "model":
        # In place, so that weights keep their names.
        model.compile(mode=cfg["compile_mode"])
    elif cfg["compile"] == "layers":
        from model import parts

        for layer in parts(model)[0]:
            layer.compile(mode=cfg["compile_mode"])
    scaler = torch.amp.GradScaler(here.type, enabled=cfg["precision"] == "amp-fp16")
    if world > 1 and not cfg["fsdp"]:
        model = DistributedDataParallel(
            model, device_ids=[here.index] if cuda else None, bucket_cap_mb=cfg["bucket_cap_mb"],
            gradient_as_bucket_view=cfg["gradient_as_bucket_view"],
        )
        if cfg["comm_hook"] != "none":
            compress(cfg, model)
    if cfg["copies"] > 1:
        model = torch.nn.DataParallel(model, list(range(cfg["copies"])))
    # FSDP's policy casts by itself.
    autocast = None if cfg["fsdp"] and TYPES[cfg["fsdp"]["param_dtype"]] else AUTOCAST.get(cfg["precision"])

    def syncing(last):
        """Gradients are reduced after the last micro-batch alone, unless train.yaml says after each."""
        last = last or cfg["sync_each"]
        if cfg["fsdp"]:
            model.set_requires_gradient_sync(last)
        return contextlib.nullcontext() if last or world == 1 or cfg["fsdp"] else model.no_sync()

    @contextlib.contextmanager
    def context():
        offload = cfg["checkpointing"] == "offload"
        kept = torch.autograd.graph.save_on_cpu(pin_memory=cuda) if offload else contextlib.nullcontext()
        with kept, torch.autocast(here.type, dtype=autocast, enabled=autocast is not None):
            yield

    data, accumulation = iter(loader(cfg, rank, world)), cfg["gradient_accumulation_steps"]
    for step in range(cfg["max_steps"]):
        for micro in range(accumulation):
            inputs = {name: tensor.to(here) for name, tensor in next(data).items()}
            last = micro + 1 == accumulation
            with syncing(last):
                with context():
                    loss, outputs = forward(cfg, model, inputs)
                    loss = (loss.mean() if cfg["copies"] > 1 else loss) / accumulation
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
