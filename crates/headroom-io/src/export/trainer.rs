//! Shared by the tools built on transformers' `Trainer`: what it does not expose, and its `TrainingArguments`.

use super::adapters;
use super::common::{learning_rate, machines};
use super::refuse::{self, Layout};
use headroom_base::document::Document;
use headroom_catalog as catalog;
use headroom_scenario::{
    AdapterMethod, Attention, Case, Checkpointing, Compile, Kernels, Lora, LossKernel, Optimizer,
    Parallelism, Precision, Problem, Quantization, Scenario,
};

/// Settings that the `Trainer` does not expose.
pub(super) const FIXED: &[&str] = &[
    "model.dims",
    "training.freeze",
    "training.train_only",
    "training.dropout",
    "training.ema",
    "training.ema_on_host",
    "training.checkpoint_every",
    "training.checkpoint_first",
    "training.checkpoint_span",
    "training.optimizer_in_backward",
    "training.zero_to_none",
    "training.keep_outputs",
    "training.use_cache",
    "training.channels_last",
];

/// Adapter settings that tools creating the adapters themselves do not expose.
pub(super) const ADAPTERS: &[&str] = &["training.lora.exclude", "training.lora.fp32_adapters"];

/// Modules trained in full alongside adapters, for tools that do not expose them or train them in their own way.
pub(super) const MODULES_TO_SAVE: &[&str] = &["training.lora.modules_to_save"];

/// Settings of Liger, for tools that do not expose it.
pub(super) const LIGER: &[&str] = &["training.kernels", "training.loss"];

/// `torch_compile`, for tools that pass it on.
pub(super) const COMPILE: &[&str] = refuse::COMPILE;

/// The parallel strategies of a tool.
pub(super) struct Layouts {
    pub strategies: &'static [Parallelism],
    /// The strategies' settings that it exposes, in lists that tools share.
    pub details: &'static [&'static [&'static str]],
}

/// A scenario as the options of a tool built on the `Trainer`.
pub(super) struct TrainerConfig {
    pub optim: &'static str,
    pub layout: Layout,
    pub liger: Liger,
}

/// The parts of Liger that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Liger {
    /// Its norms, rotary embeddings and gated layers.
    pub kernels: bool,
    pub loss: LossKernel,
}

impl Liger {
    const NOTHING: Self = Self {
        kernels: false,
        loss: LossKernel::Library,
    };
    /// What its single switch turns on.
    const ALL: Self = Self {
        kernels: true,
        loss: LossKernel::LigerLinear,
    };

    pub fn is_used(self) -> bool {
        self != Self::NOTHING
    }

    /// The parts as keyword arguments of `apply_liger_kernel_to_*`, which ignore those that their model lacks; `None` if the
    /// switch alone turns on the same.
    fn parts(self) -> Option<Document> {
        let chosen = self.is_used() && self != Self::ALL;
        let kernels = ["rope", "rms_norm", "layer_norm", "swiglu", "geglu"];
        let kernels = kernels.map(|name| (name.to_string(), self.kernels.into()));
        let kernels: Document = kernels.into_iter().collect();
        chosen.then(|| {
            kernels
                .with("cross_entropy", self.loss == LossKernel::Liger)
                .with(
                    "fused_linear_cross_entropy",
                    self.loss == LossKernel::LigerLinear,
                )
        })
    }
}

/// The scenario as the `Trainer`'s options, or every problem with it, these fixed fields and these precisions.
pub(super) fn config(
    scenario: &Scenario,
    fixed: &[&str],
    precisions: &[Precision],
    layouts: &Layouts,
) -> Result<TrainerConfig, Vec<Problem>> {
    let mut task = refuse::objective(scenario);
    task.extend(adapters::problems(scenario));
    match config_for_task(scenario, fixed, precisions, layouts) {
        Ok(config) if task.is_empty() => Ok(config),
        config => Err([task, config.err().unwrap_or_default()].concat()),
    }
}

/// What context parallelism needs: the launcher's mesh is one of FSDP 2, and the `Trainer` raises for any other attention
/// (`_prepare_context_parallel_inputs`).
fn context(scenario: &Scenario) -> Vec<Problem> {
    if scenario.parallel.cp <= 1 {
        return Vec::new();
    }
    let (strategy, attention) = (scenario.parallel.strategy, scenario.training.attention);
    let divides = matches!(strategy, Parallelism::Fsdp2 | Parallelism::Hsdp);
    let expected = "fsdp2 or hsdp: this target has context parallelism with FSDP 2 only";
    let strategy = Problem::new("parallel.strategy", strategy.id(), expected);
    let expected = "sdpa: this target has context parallelism with no other attention";
    let known = attention == Attention::Sdpa;
    let attention = Problem::new("training.attention", attention.id(), expected);
    [
        (!divides).then_some(strategy),
        (!known).then_some(attention),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A problem if it is not the whole model that is compiled.
fn compiled(scenario: &Scenario) -> Option<Problem> {
    let compile = scenario.training.compile;
    let shards = scenario.parallel.strategy != Parallelism::Ddp;
    let whole = compile == Compile::Model && !shards;
    let expected = "nothing, or model where nothing is sharded, for this target";
    (!whole && compile != Compile::Nothing)
        .then(|| Problem::new("training.compile", compile.id(), expected))
}

/// The same for a tool that exposes the task.
pub(super) fn config_for_task(
    scenario: &Scenario,
    fixed: &[&str],
    precisions: &[Precision],
    layouts: &Layouts,
) -> Result<TrainerConfig, Vec<Problem>> {
    let known = layouts.details.concat();
    let rare: Vec<&str> = refuse::RARE
        .iter()
        .chain(refuse::COMPILE)
        .copied()
        .filter(|path| !known.contains(path))
        .collect();
    let mut problems = refuse::fixed(scenario, &[FIXED, &rare, fixed]);
    if known.contains(&"parallel.cp") {
        problems.extend(context(scenario));
    }
    problems.extend(compiled(scenario));
    problems.extend(refuse::causal(scenario));
    problems.extend(refuse::plain_checkpointing(scenario));
    problems.extend(refuse::quantized(scenario));
    problems.extend(refuse::precision_among(scenario, precisions));
    let liger = if fixed.contains(&"training.kernels") {
        Ok(Liger::NOTHING)
    } else {
        liger(scenario)
    };
    problems.extend(refuse::details(scenario, &known));
    problems.extend(machines(scenario).err());
    let layout = refuse::layout(scenario, layouts.strategies);
    if let Ok(layout) = layout {
        let view = ["parallel.bucket_view"];
        problems.extend(refuse::buckets(scenario, layout, &view));
    }
    // It sets no autocast on a model that is wrapped already (`_prepare_for_training`).
    let autocasts = scenario.training.precision.autocasts();
    if layout == Ok(Layout::DataParallel) && autocasts {
        let expected = "fp32, bf16 or fp16: under DataParallel this target sets no autocast";
        let id = scenario.training.precision.id();
        problems.push(Problem::new("training.precision", id, expected));
    }
    match (optim(scenario.training.optimizer), layout, liger) {
        (Ok(optim), Ok(layout), Ok(liger)) if problems.is_empty() => Ok(TrainerConfig {
            optim,
            layout,
            liger,
        }),
        (optim, layout, liger) => {
            problems.extend(optim.err());
            problems.extend(layout.err());
            problems.extend(liger.err());
            Err(problems)
        }
    }
}

/// A problem if only parts of Liger are used: this target has one switch for kernels and loss.
fn parts_of_liger(scenario: &Scenario) -> Option<Problem> {
    let (kernels, loss) = (scenario.training.kernels, scenario.training.loss);
    match (kernels, loss) {
        (Kernels::Library, LossKernel::Library) | (Kernels::Liger, LossKernel::LigerLinear) => None,
        (_, LossKernel::Library | LossKernel::LigerLinear) => {
            let expected =
                "library with the library's loss, or liger with liger-linear, for this target";
            Some(Problem::new("training.kernels", kernels.id(), expected))
        }
        _ => {
            let expected = "library, or liger-linear with Liger's kernels, for this target";
            Some(Problem::new("training.loss", loss.id(), expected))
        }
    }
}

/// The options of a tool whose single switch turns on Liger's kernels and loss.
pub(super) fn with_one_switch(
    scenario: &Scenario,
    config: Result<TrainerConfig, Vec<Problem>>,
) -> Result<TrainerConfig, Vec<Problem>> {
    let Some(problem) = parts_of_liger(scenario) else {
        return config;
    };
    let mut problems = config.err().unwrap_or_default();
    problems.retain(|known| known.field() != problem.field());
    problems.push(problem);
    Err(problems)
}

/// The trainer's options and the task's, or every problem with either, and these.
pub(super) fn with_task<T>(
    config: Result<TrainerConfig, Vec<Problem>>,
    task: Result<T, Problem>,
    problems: Vec<Problem>,
) -> Result<(TrainerConfig, T), Vec<Problem>> {
    match (config, task) {
        (Ok(config), Ok(task)) if problems.is_empty() => Ok((config, task)),
        (config, task) => {
            let config = config.err().unwrap_or_default();
            Err([config, task.err().into_iter().collect(), problems].concat())
        }
    }
}

/// The parts of Liger that are used, if it patches this model.
fn liger(scenario: &Scenario) -> Result<Liger, Problem> {
    let (kernels, loss) = (scenario.training.kernels, scenario.training.loss);
    let config = Liger {
        kernels: kernels == Kernels::Liger,
        loss,
    };
    if !matches!(kernels, Kernels::Library | Kernels::Liger) {
        let expected = "library or liger for this target";
        return Err(Problem::new("training.kernels", kernels.id(), expected));
    }
    let known = [
        LossKernel::Library,
        LossKernel::LigerLinear,
        LossKernel::Liger,
    ];
    if !known.contains(&loss) {
        let expected = "library, liger-linear or liger for this target";
        return Err(Problem::new("training.loss", loss.id(), expected));
    }
    let patched = Case::of(scenario)
        .model
        .is_none_or(|model| catalog::has_liger(model.arch));
    if config.is_used() && !patched {
        let expected = "library with the library's loss: Liger patches nothing in this model";
        return Err(if config.kernels {
            Problem::new("training.kernels", kernels.id(), expected)
        } else {
            Problem::new("training.loss", loss.id(), expected)
        });
    }
    Ok(config)
}

/// Keys of the adapters in PEFT's names, except their targets.
pub(super) fn peft(lora: &Lora) -> Document {
    Document::new()
        .with("lora_r", lora.rank)
        .with("lora_alpha", lora.rank.saturating_mul(2))
        .with("lora_dropout", lora.dropout)
}

/// The tool's keys for modules trained in full alongside the adapters, and for DoRA.
pub(super) fn modules_to_save_and_dora(
    lora: &Lora,
    modules_to_save: &'static str,
    dora: &'static str,
) -> Document {
    let mut document = Document::new();
    if !lora.modules_to_save.is_empty() {
        document = document.with(modules_to_save, lora.modules_to_save.clone());
    }
    if lora.method == AdapterMethod::Dora {
        document = document.with(dora, true);
    }
    document
}

/// Whether frozen weights are in four bits, and whether their scales are quantised too.
pub(super) fn four_bits(scenario: &Scenario) -> Option<bool> {
    match scenario.training.quantization {
        // Refused before (`refuse::quantized`).
        Quantization::None
        | Quantization::Int8
        | Quantization::Nf4Ao
        | Quantization::Hqq
        | Quantization::Gptq
        | Quantization::Awq
        | Quantization::Aqlm
        | Quantization::Fp8 => None,
        Quantization::Nf4 => Some(false),
        Quantization::Nf4Double => Some(true),
    }
}

/// The `optim` of transformers that runs exactly this optimizer.
fn optim(optimizer: Optimizer) -> Result<&'static str, Problem> {
    match optimizer {
        Optimizer::AdamW => Ok("adamw_torch"),
        Optimizer::AdamWFused => Ok("adamw_torch_fused"),
        Optimizer::Sgd => Ok("sgd"),
        Optimizer::AdafactorHf => Ok("adafactor"),
        Optimizer::Adagrad => Ok("adagrad"),
        Optimizer::RmsProp => Ok("rmsprop"),
        Optimizer::AdamW8bit => Ok("adamw_bnb_8bit"),
        Optimizer::PagedAdamW => Ok("paged_adamw_32bit"),
        Optimizer::PagedAdamW8bit => Ok("paged_adamw_8bit"),
        Optimizer::AdamW8bitAo => Ok("adamw_torch_8bit"),
        Optimizer::AdamW4bitAo => Ok("adamw_torch_4bit"),
        Optimizer::AdEmaMix => Ok("ademamix"),
        Optimizer::AdEmaMix8bit => Ok("ademamix_8bit"),
        Optimizer::PagedAdEmaMix => Ok("paged_ademamix_32bit"),
        Optimizer::PagedAdEmaMix8bit => Ok("paged_ademamix_8bit"),
        Optimizer::LionBnb => Ok("lion_32bit"),
        Optimizer::Lion8bit => Ok("lion_8bit"),
        Optimizer::PagedLion => Ok("paged_lion_32bit"),
        Optimizer::PagedLion8bit => Ok("paged_lion_8bit"),
        Optimizer::RmsPropBnb => Ok("rmsprop_bnb_32bit"),
        Optimizer::RmsProp8bit => Ok("rmsprop_bnb_8bit"),
        Optimizer::ScheduleFree => Ok("schedule_free_adamw"),
        Optimizer::ScheduleFreeRAdam => Ok("schedule_free_radam"),
        Optimizer::ScheduleFreeSgd => Ok("schedule_free_sgd"),
        Optimizer::StableAdamW => Ok("stable_adamw"),
        Optimizer::GrokAdamW => Ok("grokadamw"),
        Optimizer::AnyPrecision => Ok("adamw_anyprecision"),
        Optimizer::Lomo => Ok("lomo"),
        Optimizer::AdaLomo => Ok("adalomo"),
        other => {
            let expected = "adamw, adamw-fused, sgd, adafactor-hf, adagrad, rmsprop, lomo, a schedule-free one, or one of \
                            bitsandbytes or torchao, for this target";
            Err(Problem::new("training.optimizer", other.id(), expected))
        }
    }
}

/// The format that weights are loaded in.
pub(super) fn weights(precision: Precision) -> &'static str {
    match precision {
        Precision::Fp32 | Precision::AmpBf16 | Precision::AmpFp16 => "float32",
        Precision::Bf16 | Precision::AmpBf16OnBf16 => "bfloat16",
        Precision::Fp16 | Precision::AmpFp16OnFp16 => "float16",
        Precision::Fp64 => "float64",
    }
}

/// Keys of `TrainingArguments` that memory depends on, legal from transformers 4.57 to 5.23, and those a run needs.
pub(super) fn arguments(scenario: &Scenario, config: &TrainerConfig) -> Document {
    let Scenario {
        training, runtime, ..
    } = scenario;
    let precision = training.precision;
    // FSDP does the checkpointing, and refuses to do it twice.
    let checkpointing = training.checkpointing != Checkpointing::None && !config.layout.is_fsdp2();
    let mut document = Document::new()
        .with("per_device_train_batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("gradient_checkpointing", checkpointing);
    if checkpointing {
        let reentrant = Document::new().with("use_reentrant", false);
        document = document.with("gradient_checkpointing_kwargs", reentrant);
    }
    if training.compile != Compile::Nothing {
        document = document
            .with("torch_compile", true)
            .with("torch_compile_mode", training.compile_mode.id());
    }
    if config.liger.is_used() {
        document = document.with("use_liger_kernel", true);
    }
    if let Some(parts) = config.liger.parts() {
        document = document.with("liger_kernel_config", parts);
    }
    if config.layout == Layout::Ddp {
        document = document.with("ddp_bucket_cap_mb", scenario.parallel.bucket_mb);
    }
    if config.layout != Layout::Single && scenario.parallel.sync_each {
        let each = Document::new().with("sync_each_batch", true);
        let config = Document::new().with("gradient_accumulation_kwargs", each);
        document = document.with("accelerator_config", config);
    }
    let bf16 = matches!(precision, Precision::AmpBf16 | Precision::AmpBf16OnBf16);
    document = document
        .with_note("bf16", bf16, "autocast")
        .with("fp16", precision.scales_gradients())
        .with("optim", config.optim)
        .with_note(
            "max_grad_norm",
            if training.clip { 1.0 } else { 0.0 },
            "0: no clipping",
        )
        .with("dataloader_num_workers", runtime.workers)
        .with("dataloader_pin_memory", runtime.pin_memory);
    if runtime.workers > 0 {
        document = document.with("dataloader_prefetch_factor", runtime.prefetch);
    }
    document = document.with_note(
        "learning_rate",
        learning_rate(scenario),
        "yours to choose, as are the lines below",
    );
    document = document
        .with("max_steps", 100_u64)
        .with("logging_steps", 10_u64);
    saves(scenario, document)
        .with("report_to", "none")
        .with("output_dir", "out")
}

/// When to save, and how much to keep.
pub(super) fn saves(scenario: &Scenario, document: Document) -> Document {
    let Some(every) = scenario.runtime.save_every else {
        return document.with("save_strategy", "no");
    };
    let document = document
        .with("save_strategy", "steps")
        .with("save_steps", every.get());
    match scenario.runtime.save_keep {
        Some(keep) => document.with("save_total_limit", keep.get()),
        None => document,
    }
}
