"""`gpu_headroom.check`: callbacks that say before the first step what a run will need, and afterwards what it took."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, Optional

from . import _trl
from ._adapters import adapters, quantized
from ._answers import Estimate, gib
from ._program import Refused
from ._run import UNKNOWN_MODEL, Plan, Run, batch, counts, frozen, head, machine, model_config, plan, versions, weights
from ._types import Measured

# Later steps are like the third: the optimizer's states are there from the second on.
STEPS = 3


def check(trainer: Any, /, *, say: Callable[[str], None] = print, **settings: Any) -> Any:
    """Adds a callback to a trainer, and returns it.

    Before the first step it says what the run will need, for batches like the first and for the longest that there may be;
    after the steps what PyTorch counted. The callback keeps both: `estimate`, `measured`, `problem` (why there is no
    estimate) and `link` (the scenario, for the page). Keywords are settings, as `gpu_headroom.estimate` takes them; they come
    before what the trainer says.
    """
    for kind in type(trainer).__mro__:
        root = kind.__module__.partition(".trainer")[0]
        if kind.__name__ == "Trainer" and root == "transformers":
            return _of_transformers(trainer, say, settings)
        if kind.__name__ == "Trainer" and root in ("lightning.pytorch", "pytorch_lightning"):
            return _of_lightning(trainer, root, say, settings)
    raise TypeError(f"check takes a Trainer of transformers or of Lightning, not {type(trainer).__module__}.{type(trainer).__qualname__}")


class Report:
    """What a run was said to need, and what it took."""

    def __init__(self, say: Callable[[str], None], settings: Mapping[str, Any]) -> None:
        self.estimate: Optional[Estimate] = None
        self.measured: Optional[Measured] = None
        self.problem: Optional[str] = None
        self.link: Optional[str] = None
        self._say, self._settings, self._steps = say, settings, 0

    def say(self, text: str) -> None:
        self._say(f"headroom: {text}")

    def before(self, read: Callable[[], Run]) -> None:
        """Before the first step: what it will need."""
        cuda = _cuda()
        try:
            run = read()
            found = plan(run, self._settings)
            self.estimate, self.link = found.estimate, found.link()
            self._tell(run, found)
        except Refused as refusal:
            self.problem = str(refusal)
            if "model_type" in self.problem:
                self.problem += f"\n{UNKNOWN_MODEL}"
        except Exception as problem:  # A check must not end the run that it watches.
            self.problem = f"this run could not be read ({type(problem).__name__}: {problem})"
        for line in (self.problem or "").splitlines():
            self.say(line if line == UNKNOWN_MODEL else f"no estimate: {line}")
        if cuda is not None:
            cuda.reset_peak_memory_stats()

    def _tell(self, run: Run, found: Plan) -> None:
        fields = found.settings
        length = fields.get("data.sequence")
        of = f"{fields.get('data.micro_batch')} × {length} tokens" if length else f"{fields.get('data.micro_batch')} samples"
        if not {"hardware.gpu", "gpu"} & fields.keys():
            self.say("there is no CUDA GPU here: the estimate is for the scenario's default, unless you name one (gpu=...)")
        self.say(f"with batches of {of} this run {found.estimate.verdict}")
        allocated, reserved = found.estimate["allocated"]["expected"], found.estimate["reserved"]["expected"]
        self.say(f"PyTorch will allocate {gib(allocated)} at most and reserve {gib(reserved)}; the peak is in {found.estimate['phase']}")
        if length and run.longest > length:
            longer = plan(run, {**self._settings, "data.sequence": run.longest})
            self.say(f"with batches of {run.longest} tokens, to which samples are cut, it {longer.estimate.verdict}")
        for note in found.notes:
            self.say(note)

    def after(self) -> None:
        """After a step: what was allocated up to here."""
        self._steps += 1
        if self._steps > STEPS:
            return
        cuda = _cuda()
        if cuda is None:
            if self._steps == 1:
                self.say("nothing was measured: PyTorch counts what is allocated on CUDA GPUs only")
            return
        before = self.measured
        now: Measured = {"step": self._steps, "allocated": cuda.max_memory_allocated(), "reserved": cuda.max_memory_reserved()}
        self.measured = now
        if before is None or (self._steps == STEPS and now["allocated"] > before["allocated"]):
            self.say(f"up to the end of step {self._steps} PyTorch allocated {gib(now['allocated'])} at most and reserved {gib(now['reserved'])}{self._off(now)}")

    def _off(self, now: Measured) -> str:
        if self.estimate is None:
            return ""
        planned = self.estimate["allocated"]["expected"]
        return f" ({100 * (now['allocated'] - planned) / planned:+.1f} % of what was predicted to be allocated)"


def _cuda() -> Any:
    """torch.cuda where there is a GPU."""
    torch = importlib.import_module("torch")
    return torch.cuda if torch.cuda.is_available() else None


def _of_transformers(trainer: Any, say: Callable[[str], None], settings: Mapping[str, Any]) -> Any:
    base = importlib.import_module("transformers").TrainerCallback

    class Check(Report, base):  # type: ignore[misc, valid-type]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            if state.is_world_process_zero:
                self.after()

    callback = Check(say, settings)
    trainer.add_callback(callback)
    step, own = trainer.training_step, "training_step" in vars(trainer)

    @functools.wraps(step)
    def first(model: Any, inputs: Any, *rest: Any, **named: Any) -> Any:
        # The batch is here and nothing has been computed of it: the hooks of callbacks do not see it.
        if own:
            trainer.training_step = step
        else:
            del trainer.training_step
        if trainer.is_world_process_zero():
            callback.before(lambda: _read_transformers(trainer, inputs))
        return step(model, inputs, *rest, **named)

    trainer.training_step = first
    return callback


# Of TrainingArguments and SFTConfig what `headroom import` reads and a trainer's objects do not say better.
ARGUMENTS = (
    "per_device_train_batch_size", "gradient_accumulation_steps", "bf16", "fp16", "optim", "gradient_checkpointing", "max_grad_norm",
    "dataloader_num_workers", "dataloader_prefetch_factor", "dataloader_pin_memory", "save_strategy", "save_steps",
    "save_total_limit", "ddp_bucket_cap_mb", "use_liger_kernel", "liger_kernel_config",
)


def _read_transformers(trainer: Any, inputs: Any) -> Run:
    args, model = trainer.args, trainer.model
    of_trl = _trl.is_trl(trainer)
    objective = _trl.objective(trainer) if of_trl else None
    config = model_config(model)
    if config is None:
        raise Refused(f"{type(model).__name__} is no model of transformers with a configuration. {UNKNOWN_MODEL}")
    if head(model) and objective != "reward":
        raise Refused(f"the head of {type(model).__name__} is not modelled. {UNKNOWN_MODEL}")
    if args.n_gpu > 1:
        raise Refused("torch.nn.DataParallel is not modelled: start a process for each GPU with torchrun")

    def value(name: str) -> Any:
        return _trl.plain(args, name)

    said = {name: value(name) for name in ARGUMENTS if value(name) is not None}
    if value("eval_strategy") not in (None, "no"):
        said["per_device_eval_batch_size"] = value("per_device_eval_batch_size")
    adapted = adapters(model)
    if of_trl:
        said["use_peft"] = bool(adapted)
        if objective is None:
            said["loss_type"] = value("loss_type")
    said.update(weights(model))
    said.update({name: adapted[f"training.lora.{field}"] for name, field in LORA.items() if f"training.lora.{field}" in adapted})
    sizes = _trl.batch(trainer, objective, inputs) if objective else batch(inputs)
    run = Run(config, said, settings={**machine(args.world_size), **sizes, **quantized(model), **adapted}, longest=value("max_length") or 0)
    run.software = {"stack.trainer": "trl" if of_trl else "transformers", **versions(**({"trainer_version": "trl"} if of_trl else {}))}
    if objective:
        run.settings.update(_trl.task(trainer, objective, model))
    if value("torch_compile"):
        run.settings["training.compile"] = "model"
    if value("activation_offloading"):
        run.notes.append("activation_offloading is not taken: it would need less")
    layout, fields = _layout(trainer, args.world_size)
    said.update(layout)
    run.settings.update(fields)
    sharded = said.get("distributed_type") == "FSDP" or "deepspeed" in said or "parallel.tp" in fields
    _parameters(run, model, whole=not quantized(model), sharded=sharded, adapted=bool(adapted))
    # A reference's copy is a part of the run.
    copy = getattr(trainer, "ref_model", None) if objective else None
    if copy is not None and run.weights is not None:
        run.weights += counts(copy)[0]
    return run


def _layout(trainer: Any, world: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """How the processes share the work, as accelerate has it: in the words of its file, and as fields of the scenario."""
    accelerator = trainer.accelerator
    state = accelerator.state
    fields = _degrees(getattr(accelerator, "parallelism_config", None) or getattr(state, "parallelism_config", None))

    def plugin(name: str) -> Any:
        return getattr(state, name, None)

    if plugin("megatron_lm_plugin") is not None:
        raise Refused("Megatron-LM through accelerate is not modelled")
    dynamo = plugin("dynamo_plugin")
    backend = str(getattr(getattr(dynamo, "backend", None), "value", getattr(dynamo, "backend", "no"))).lower()
    if backend not in ("no", "none"):
        by_layer = bool(getattr(dynamo, "use_regional_compilation", False))
        fields["training.compile"] = "layers" if by_layer else "model"
    if str(getattr(accelerator, "mixed_precision", "")) == "fp8":
        raise Refused("fp8 through accelerate is not modelled: say training.fp8 or training.low_precision")
    ddp = getattr(accelerator, "ddp_handler", None)
    if ddp is not None and world > 1:
        fields["parallel.bucket_view"] = bool(getattr(ddp, "gradient_as_bucket_view", False))
        hook = str(getattr(getattr(ddp, "comm_hook", None), "value", "no")).lower()
        if hook in ("fp16", "bf16"):
            fields["parallel.comm_hook"] = hook
        elif hook == "power_sgd":
            fields["parallel.comm_hook"] = "powersgd"
    fsdp, deepspeed = plugin("fsdp_plugin"), plugin("deepspeed_plugin")
    said: dict[str, Any] = {"num_processes": world}
    if fsdp is not None:
        version = getattr(fsdp, "fsdp_version", 1)
        again = fsdp.reshard_after_forward if version == 2 else getattr(fsdp.sharding_strategy, "name", None)
        about = {"fsdp_version": version, "fsdp_activation_checkpointing": bool(fsdp.activation_checkpointing)}
        about["fsdp_offload_params"] = bool(getattr(fsdp.cpu_offload, "offload_params", fsdp.cpu_offload))
        about["fsdp_reshard_after_forward"] = again
        return {**said, "distributed_type": "FSDP", "fsdp_config": about}, fields
    if deepspeed is not None:
        config = deepspeed.deepspeed_config
        about = {name: value for name, value in config.get("zero_optimization", {}).items() if name in ZERO and value != "auto"}
        return {**said, "deepspeed": {"zero_optimization": about}}, fields
    return {**said, "distributed_type": "MULTI_GPU" if world > 1 else "NO"}, fields


# Of DeepSpeed's `zero_optimization` what changes memory and is modelled; "auto" is what transformers has filled in.
ZERO = (
    "stage", "offload_optimizer", "offload_param", "overlap_comm", "contiguous_gradients", "reduce_bucket_size", "allgather_bucket_size",
    "stage3_prefetch_bucket_size", "stage3_param_persistence_threshold", "stage3_max_live_parameters", "stage3_max_reuse_distance",
    "sub_group_size", "zero_hpz_partition_size",
)


def _degrees(config: Any) -> dict[str, Any]:
    """accelerate's ParallelismConfig."""
    if config is None:
        return {}

    def size(name: str) -> int:
        return int(getattr(config, f"{name}_size", 1) or 1)

    found: dict[str, Any] = {f"parallel.{name}": size(name) for name in ("tp", "cp") if size(name) > 1}
    if size("sp") > 1:
        raise Refused("sequence parallelism through accelerate (sp_size) is not modelled")
    if size("dp_replicate") > 1 and size("dp_shard") > 1:
        found["parallel.strategy"] = "hsdp"
    return found


def _parameters(run: Run, model: Any, whole: bool, sharded: bool, adapted: bool) -> None:
    """What is frozen, and how many parameters there are, where its tensors are whole and an element is a parameter."""
    if sharded:
        return
    every, trained = counts(model)
    # Packed weights have fewer elements than parameters; what is trained is never packed.
    run.weights, run.trained = every if whole else None, trained
    parts = [] if adapted or not whole else frozen(model)
    if len(parts) > 64:
        run.notes.append(f"{len(parts)} parts of the model are frozen one by one, which is not taken")
    elif parts:
        run.settings["training.freeze"] = parts


def _of_lightning(trainer: Any, root: str, say: Callable[[str], None], settings: Mapping[str, Any]) -> Any:
    base = importlib.import_module(root).Callback

    class Check(Report, base):  # type: ignore[misc, valid-type]
        seen = -1

        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, index: int) -> None:
            if self.seen < 0:
                self.seen = trainer.global_step
                if trainer.is_global_zero:
                    self.before(lambda: _read_lightning(trainer, module, batch))

        def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, index: int) -> None:
            # Several batches may make a step.
            if trainer.global_step > self.seen and trainer.is_global_zero:
                self.seen = trainer.global_step
                self.after()

    callback = Check(say, settings)
    trainer.callbacks.append(callback)
    return callback


def _read_lightning(trainer: Any, module: Any, inputs: Any) -> Run:
    models = [part for part in module.modules() if model_config(part) is not None]
    if not models:
        raise Refused(f"{type(module).__name__} holds no model of transformers with a configuration. {UNKNOWN_MODEL}")
    # The outermost comes first.
    model = models[0]
    if head(model):
        raise Refused(f"the head of {type(model).__name__} is not modelled. {UNKNOWN_MODEL}")
    strategy = trainer.strategy
    said: dict[str, Any] = {
        "trainer": {
            "devices": trainer.num_devices, "num_nodes": trainer.num_nodes, "precision": str(trainer.precision),
            "accumulate_grad_batches": trainer.accumulate_grad_batches, "gradient_clip_val": trainer.gradient_clip_val,
            "strategy": type(strategy).__name__,
        }
    }
    if trainer.optimizers:
        optimizer = getattr(trainer.optimizers[0], "_optimizer", trainer.optimizers[0])
        kind, options = type(optimizer), optimizer.defaults
        kept = {name: options[name] for name in ("fused", "foreach", "momentum") if options.get(name) not in (None, 0)}
        said["optimizer"] = {"class_path": f"{kind.__module__}.{kind.__qualname__}", **({"init_args": kept} if kept else {})}
    about, mixed = weights(model), str(trainer.precision)
    settings = {**machine(trainer.world_size), **batch(inputs)}
    if about.get("attn_implementation") in ("eager", "sdpa", "flash_attention_2"):
        settings["training.attention"] = about["attn_implementation"]
    if getattr(model, "is_gradient_checkpointing", False):
        settings["training.checkpointing"] = "layers"
    if about.get("dtype") == "bfloat16" and mixed in ("bf16-mixed", "32-true"):
        settings["training.precision"] = "amp-bf16-on-bf16" if mixed == "bf16-mixed" else "bf16"
    given = adapters(model)
    settings.update(quantized(model))
    settings.update(given)
    run = Run(model_config(model) or {}, said, settings=settings)
    run.software = {"stack.trainer": "lightning", **versions(trainer_version="lightning")}
    sharded = any(word in type(strategy).__name__ for word in ("FSDP", "DeepSpeed", "ModelParallel"))
    _parameters(run, module, whole=not quantized(model), sharded=sharded, adapted=bool(given))
    return run


# Keys of trainers' files for adapters, and the fields that they are.
LORA = {
    "lora_r": "rank", "lora_dropout": "dropout", "lora_target_modules": "targets", "lora_exclude_modules": "exclude",
    "lora_fp32": "fp32_adapters",
}
