"""`headroom.check`: callbacks that say before the first step what a run will need, and afterwards what it took."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any, Optional

from ._program import Refused
from ._run import UNKNOWN_MODEL, Plan, Run, adapters, batch, counts, frozen, machine, model_config, plan, versions, weights
from ._types import Estimate, Measured

# Later steps are like the third: the optimizer's states are there from the second on.
STEPS = 3


def check(trainer: Any, /, *, say: Callable[[str], None] = print, **settings: Any) -> Any:
    """Adds a callback to a trainer, and returns it.

    Before the first step it says what the run will need, for batches like the first and for the longest that there may be;
    after the steps what PyTorch counted. The callback keeps both: `estimate`, `measured`, `problem` (why there is no
    estimate) and `link` (the scenario, for the page). Keywords are settings, as `headroom.estimate` takes them; they come
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
        self.say(f"with batches of {of} this run {verdict(found.estimate)}")
        allocated, reserved = found.estimate["allocated"]["expected"], found.estimate["reserved"]["expected"]
        self.say(f"PyTorch will allocate {gib(allocated)} at most and reserve {gib(reserved)}; the peak is in {found.estimate['phase']}")
        if length and run.longest > length:
            longer = plan(run, {**self._settings, "data.sequence": run.longest})
            self.say(f"with batches of {run.longest} tokens, to which samples are cut, it {verdict(longer.estimate)}")
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


def verdict(estimate: Estimate) -> str:
    """`needs 10.2 GiB (9.9 to 10.6) of 23.5 GiB on the GPU: fits`."""
    device, usable = estimate["device"], estimate["usable"]
    needs = f"needs {gib(device['expected'])} ({gib(device['low'])} to {gib(device['high'])})"
    if not usable:
        return f"{needs}; the GPU's memory is not known"
    grown = estimate.get("growth", 0)
    if device["high"] + grown <= usable:
        said = "it fits"
    elif device["expected"] + grown <= usable:
        said = "it probably fits"
    elif device["low"] + grown <= usable:
        said = "it probably does not fit"
    else:
        said = "it does not fit"
    return f"{needs} of the GPU's {gib(usable)}: {said}"


def gib(size: int) -> str:
    return f"{size / 2**30:.2f} GiB"


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
    kinds = type(trainer).__mro__
    of_trl = any(kind.__module__.startswith("trl.") for kind in kinds)
    if of_trl and all(kind.__name__ != "SFTTrainer" for kind in kinds):
        raise Refused(f"of TRL only SFTTrainer is read: describe a {type(trainer).__name__} to headroom.estimate (task.objective)")
    args, model = trainer.args, trainer.model
    config = model_config(model)
    if config is None:
        raise Refused(f"{type(model).__name__} is no model of transformers with a configuration. {UNKNOWN_MODEL}")
    if args.n_gpu > 1:
        raise Refused("torch.nn.DataParallel is not modelled: start a process for each GPU with torchrun")
    value = lambda name: getattr(getattr(args, name, None), "value", getattr(args, name, None))
    said = {name: value(name) for name in ARGUMENTS if value(name) is not None}
    if value("eval_strategy") not in (None, "no"):
        said["per_device_eval_batch_size"] = value("per_device_eval_batch_size")
    if of_trl:
        said.update(use_peft=bool(getattr(model, "peft_config", None)), loss_type=value("loss_type"))
    said.update(weights(model))
    said.update(adapters(model))
    run = Run(config, said, settings={**machine(args.world_size), **batch(inputs)}, longest=value("max_length") or 0)
    run.software = {"stack.trainer": "trl" if of_trl else "transformers", **versions(**({"trainer_version": "trl"} if of_trl else {}))}
    if value("torch_compile"):
        run.settings["training.compile"] = "model"
    said.update(_layout(trainer, args.world_size))
    sharded = said.get("distributed_type") == "FSDP" or "deepspeed" in said
    _parameters(run, model, whole=not sharded and "load_in_4bit" not in said, adapted="lora_r" in said)
    return run


def _layout(trainer: Any, world: int) -> dict[str, Any]:
    """How the processes share the work, as accelerate has it."""
    state = trainer.accelerator.state
    fsdp, deepspeed = getattr(state, "fsdp_plugin", None), getattr(state, "deepspeed_plugin", None)
    said: dict[str, Any] = {"num_processes": world}
    if fsdp is not None:
        version = getattr(fsdp, "fsdp_version", 1)
        again = fsdp.reshard_after_forward if version == 2 else getattr(fsdp.sharding_strategy, "name", None)
        about = {"fsdp_version": version, "fsdp_activation_checkpointing": bool(fsdp.activation_checkpointing)}
        about["fsdp_offload_params"] = bool(getattr(fsdp.cpu_offload, "offload_params", fsdp.cpu_offload))
        about["fsdp_reshard_after_forward"] = again
        return {**said, "distributed_type": "FSDP", "fsdp_config": about}
    if deepspeed is not None:
        about = deepspeed.deepspeed_config.get("zero_optimization", {})
        return {**said, "deepspeed": {"zero_optimization": {name: about[name] for name in about if name in ("stage", "offload_optimizer", "offload_param")}}}
    return {**said, "distributed_type": "MULTI_GPU" if world > 1 else "NO"}


def _parameters(run: Run, model: Any, whole: bool, adapted: bool) -> None:
    """What is frozen, and how many parameters there are, where its tensors are whole and an element is a parameter."""
    if not whole:
        return
    run.weights, run.trained = counts(model)
    parts = [] if adapted else frozen(model)
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
    if about.get("load_in_4bit"):
        settings["training.quantization"] = "nf4-double" if about.get("bnb_4bit_use_double_quant") else "nf4"
    run = Run(model_config(model) or {}, said, settings=settings)
    run.software = {"stack.trainer": "lightning", **versions(trainer_version="lightning")}
    given = adapters(model)
    for name, path in LORA.items():
        if name in given:
            settings[f"training.lora.{path}"] = given[name]
    sharded = any(word in type(strategy).__name__ for word in ("FSDP", "DeepSpeed", "ModelParallel"))
    _parameters(run, module, whole=not sharded and "load_in_4bit" not in about, adapted=bool(given))
    return run


# Keys of trainers' files for adapters, and the fields that they are.
LORA = {
    "lora_r": "rank", "lora_dropout": "dropout", "lora_target_modules": "targets", "lora_exclude_modules": "exclude",
    "lora_fp32": "fp32_adapters",
}
