//! torchtune: a recipe's file. It names torchtune's own components, so only its models can be written.

mod models;

use super::common::{file, launch, learning_rate, processes};
use super::header::header;
use super::refuse::{self, Layout};
use super::{Files, Target};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_scenario::{
    Attention, Checkpointing, Compile, Lora, LossKernel, Offload, Optimizer, Parallelism,
    Precision, Problem, Quantization, Scenario,
};

pub(crate) use models::model_of;
use models::{MODELS, Tokenizer};

pub(super) const TARGET: Target = Target {
    id: "torchtune",
    title: "torchtune",
    versions: "torchtune 0.6.1 with torchao 0.14",
    differs: "its own modules save other tensors than transformers', which this was computed for",
    write,
};

const FIXED: &[&str] = &[
    "model.dims",
    "training.freeze",
    "training.train_only",
    "training.dropout",
    "training.ema",
    "training.ema_on_host",
    "training.checkpoint_every",
    "training.checkpoint_first",
    "training.checkpoint_span",
    "training.kernels",
    "training.zero_to_none",
    "training.keep_outputs",
    "training.use_cache",
    "training.channels_last",
    "training.lora.exclude",
    "training.lora.modules_to_save",
    "data.padding_mask",
];

const LAYOUTS: &[Parallelism] = &[Parallelism::Fsdp2];

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let training = &scenario.training;
    let mut problems = refuse::fixed(scenario, &[FIXED, refuse::RARE, &["hardware.nodes"]]);
    problems.extend(refuse::task(scenario));
    problems.extend(quantized(scenario));
    problems.extend(refuse::plain_checkpointing(scenario));
    problems.extend(refuse::precision_among(
        scenario,
        &[Precision::Fp32, Precision::Bf16],
    ));
    problems.extend(refuse::details(scenario, &["parallel.reshard"]));
    problems.extend(refuse::compiled_layers(scenario));
    problems.extend(choices(scenario));
    let model = refuse::model_among(scenario, MODELS, |(id, ..)| *id);
    problems.extend(model.as_ref().err().cloned());
    let model = model.ok();
    let layout = refuse::layout(scenario, LAYOUTS);
    let (optimizer, loss) = (optimizer(scenario), loss(scenario));
    let (Some(model), Ok(layout), Ok(optimizer), Ok(loss), true) =
        (model, &layout, &optimizer, &loss, problems.is_empty())
    else {
        problems.extend(layout.err());
        problems.extend(optimizer.err());
        problems.extend(loss.err());
        return Err(problems);
    };
    let document = config(scenario, model, optimizer, loss);
    let header = header(&TARGET, scenario, estimate);
    let kind = if training.lora.is_some() {
        "lora"
    } else {
        "full"
    };
    let gpus = processes(scenario).to_string();
    let alone = format!("{kind}_finetune_single_device");
    let together = format!("{kind}_finetune_distributed");
    let words = match layout {
        Layout::Single => vec!["tune", "run", &alone, "--config", "torchtune.yaml"],
        _ => vec![
            "tune",
            "run",
            "--nproc_per_node",
            &gpus,
            &together,
            "--config",
            "torchtune.yaml",
        ],
    };
    Ok(vec![
        file(
            "torchtune.yaml",
            format!("{header}{}", yaml::write(&document)),
        ),
        launch(&header, scenario, &words),
    ])
}

/// A problem if frozen weights are quantised by another's means than torchao's, or nothing else is trained.
fn quantized(scenario: &Scenario) -> Option<Problem> {
    let training = &scenario.training;
    let known = match training.quantization {
        Quantization::None => true,
        Quantization::Nf4Ao => training.lora.is_some(),
        _ => false,
    };
    let expected = "none, or nf4-ao with adapters, for this target: it makes torchao's NF4Tensor";
    (!known).then(|| {
        Problem::new(
            "training.quantization",
            training.quantization.id(),
            expected,
        )
    })
}

/// Settings of which this tool allows only some combinations.
fn choices(scenario: &Scenario) -> Vec<Problem> {
    let training = &scenario.training;
    let mut problems = Vec::new();
    let mut expect = |field: &str, value: &str, right: bool, expected: &str| {
        if !right {
            problems.push(Problem::new(field, value, expected));
        }
    };
    let attention = training.attention;
    expect(
        "training.attention",
        attention.id(),
        attention == Attention::Sdpa,
        "sdpa for this target",
    );
    let alone = !training.optimizer_in_backward || (training.accumulation == 1 && !training.clip);
    let expected = "off with accumulation or clipping";
    expect("training.optimizer_in_backward", "on", alone, expected);
    if let Some(lora) = &training.lora {
        let like_weights = lora.fp32_adapters == (training.precision == Precision::Fp32);
        let shown = if lora.fp32_adapters { "on" } else { "off" };
        let expected = "off with bf16: this target makes adapters as the weights are";
        expect("training.lora.fp32_adapters", shown, like_weights, expected);
        let shown = lora.targets.join(",");
        let expected = "names among q_proj, k_proj, v_proj, o_proj, and gate_proj, up_proj, down_proj together";
        expect(
            "training.lora.targets",
            &shown,
            modules(lora).is_some(),
            expected,
        );
    }
    problems
}

/// The attention modules that get adapters, and whether the MLP gets them: all of its layers or none.
fn modules(lora: &Lora) -> Option<(Vec<String>, bool)> {
    const MLP: [&str; 3] = ["gate_proj", "up_proj", "down_proj"];
    let of_mlp = lora
        .targets
        .iter()
        .filter(|target| MLP.contains(&target.as_str()));
    let of_mlp = of_mlp.count();
    let mut names = Vec::new();
    for target in &lora.targets {
        match target.as_str() {
            "q_proj" | "k_proj" | "v_proj" => names.push(target.clone()),
            "o_proj" => names.push("output_proj".into()),
            module if MLP.contains(&module) => {}
            _ => return None,
        }
    }
    ((of_mlp == 0 || of_mlp == 3) && !names.is_empty()).then_some((names, of_mlp == 3))
}

fn component(name: &str) -> Document {
    Document::new().with("_component_", name)
}

fn optimizer(scenario: &Scenario) -> Result<Document, Problem> {
    let adamw = || component("torch.optim.AdamW");
    let made = match scenario.training.optimizer {
        Optimizer::AdamW => adamw(),
        Optimizer::AdamWFused => adamw().with("fused", true),
        Optimizer::AdamWLoop => adamw().with("foreach", false),
        Optimizer::Sgd => component("torch.optim.SGD"),
        Optimizer::SgdMomentum => component("torch.optim.SGD").with("momentum", 0.9),
        Optimizer::Adagrad => component("torch.optim.Adagrad"),
        Optimizer::RmsProp => component("torch.optim.RMSprop"),
        Optimizer::Adafactor => component("torch.optim.Adafactor"),
        Optimizer::AdamW8bit => component("bitsandbytes.optim.AdamW8bit"),
        Optimizer::PagedAdamW => component("bitsandbytes.optim.PagedAdamW"),
        Optimizer::PagedAdamW8bit => component("bitsandbytes.optim.PagedAdamW8bit"),
        other => {
            let expected = "an optimizer of torch or bitsandbytes, for this target";
            return Err(Problem::new("training.optimizer", other.id(), expected));
        }
    };
    Ok(made.with_note("lr", learning_rate(scenario), "yours to choose"))
}

fn loss(scenario: &Scenario) -> Result<Document, Problem> {
    let training = &scenario.training;
    match training.loss {
        LossKernel::Library => Ok(component("torch.nn.CrossEntropyLoss")),
        LossKernel::ChunkedLoss => Ok(component("torchtune.modules.loss.CEWithChunkedOutputLoss")
            .with("num_output_chunks", training.loss_chunks)),
        other => {
            let expected = "library or chunked-loss for this target";
            Err(Problem::new("training.loss", other.id(), expected))
        }
    }
}

fn config(
    scenario: &Scenario,
    (_, module, builder, tokenizer, kind): &(&str, &str, &str, Tokenizer, &str),
    optimizer: &Document,
    loss: &Document,
) -> Document {
    let training = &scenario.training;
    let model = match training
        .lora
        .as_ref()
        .and_then(|lora| Some((lora, modules(lora)?)))
    {
        None => component(&format!("torchtune.models.{module}.{builder}")),
        Some((lora, (names, mlp))) => {
            component(&format!("torchtune.models.{module}.lora_{builder}"))
                .with("lora_attn_modules", names)
                .with("apply_lora_to_mlp", mlp)
                .with("lora_rank", lora.rank)
                .with("lora_alpha", lora.rank.saturating_mul(2))
                .with("lora_dropout", lora.dropout)
                .with("quantize_base", training.quantization != Quantization::None)
        }
    };
    let (name, files) = match *tokenizer {
        Tokenizer::SentencePiece(name) => (name, vec![("path", "model/tokenizer.model")]),
        Tokenizer::Tiktoken(name) => (name, vec![("path", "model/original/tokenizer.model")]),
        Tokenizer::Bpe(name) => {
            let files = vec![
                ("path", "model/vocab.json"),
                ("merges_file", "model/merges.txt"),
            ];
            (name, files)
        }
    };
    let mut reader = component(&format!("torchtune.models.{name}"));
    for (key, path) in files {
        reader = reader.with(key, path);
    }
    let dataset = component("torchtune.datasets.text_completion_dataset")
        .with("source", "json")
        .with_note("data_files", "train.jsonl", "JSON lines with a \"text\"")
        .with("column", "text")
        .with("split", "train")
        .with_note("packed", true, "rows are full");
    let checkpointer = component("torchtune.training.FullModelHFCheckpointer")
        .with_note(
            "checkpoint_dir",
            "model",
            "tune download NAME --output-dir model",
        )
        .with_note(
            "checkpoint_files",
            vec!["model.safetensors".to_string()],
            "all of the folder's",
        )
        .with("recipe_checkpoint", Document::Null)
        .with("output_dir", "out")
        .with("model_type", *kind);
    let dtype = if training.precision == Precision::Fp32 {
        "fp32"
    } else {
        "bf16"
    };
    let checkpointing = training.checkpointing != Checkpointing::None;
    let mut document = Document::new()
        .with("output_dir", "out")
        .with("model", model)
        .with(
            "tokenizer",
            reader.with("max_seq_len", scenario.data.sequence),
        )
        .with("dataset", dataset)
        .with("seed", 0_u64)
        .with("shuffle", true)
        .with("checkpointer", checkpointer)
        .with("resume_from_checkpoint", false)
        .with("batch_size", scenario.data.micro_batch)
        .with("gradient_accumulation_steps", training.accumulation)
        .with("epochs", 1_u64)
        .with("max_steps_per_epoch", 100_u64)
        .with("optimizer", optimizer.clone())
        .with("optimizer_in_bwd", training.optimizer_in_backward)
        .with("loss", loss.clone())
        .with("clip_grad_norm", training.clip.then_some(1.0))
        .with("compile", training.compile == Compile::Layers)
        .with("device", "cuda")
        .with("dtype", dtype)
        .with("enable_activation_checkpointing", checkpointing)
        .with("enable_activation_offloading", false);
    if training.lora.is_some() {
        let scheduler =
            component("torchtune.training.lr_schedulers.get_cosine_schedule_with_warmup");
        document = document.with("lr_scheduler", scheduler.with("num_warmup_steps", 10_u64));
    }
    if processes(scenario) > 1 {
        let host = scenario.parallel.offload == Offload::Parameters;
        document = document
            .with("fsdp_cpu_offload", host)
            .with("fsdp_reshard_after_forward", scenario.parallel.reshard);
    }
    let logger = component("torchtune.training.metric_logging.StdoutLogger");
    document
        .with("metric_logger", logger)
        .with("log_every_n_steps", 1_u64)
        .with("log_peak_memory_stats", true)
}
