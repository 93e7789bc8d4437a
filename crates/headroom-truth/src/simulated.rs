//! Runs recorded on a simulated GPU (memory bookkeeping only): settings in `knobs`, the model in `dims`.

use serde::Deserialize;
use serde_json::Value;

use super::auxiliary::WithAuxiliary;
use super::knobs::{Dims, Knobs};
use super::metric::{Figure, Metric, figure};
use super::record::{Mixed, Numbers};
use super::score::Row;
use super::world::world;
use super::{distributed, extra, post};
use headroom_core::World;
use headroom_core::estimate::UncertaintySources;
use headroom_core::network::Machine;
use headroom_core::network::{self as nets, Sizes};
use headroom_core::training::{self as step, ModelMode, RunPlan};
use headroom_scenario::{
    Attention, Checkpointing, Compile, CompileMode, Data, Lora, Precision, Training,
};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Record {
    pub knobs: Knobs,
    pub dims: Dims,
    #[serde(flatten)]
    pub numbers: Numbers,
}

pub fn row(record: &Record, id: &str, group: &str, metric: Metric) -> Row {
    let truth = record.numbers.get(metric);
    // Without `pin` offload is pageable, and only batches are pinned.
    let truth = truth.filter(|_| metric != Metric::Pinned || record.knobs.pin != Some(false));
    Row::compared(id, group, predict(record, metric), truth)
}

fn predict(record: &Record, metric: Metric) -> Result<Figure, String> {
    let Record { knobs, dims, .. } = record;
    let of_last_step = matches!(metric, Metric::Forward | Metric::Phase(_) | Metric::Static);
    if knobs.mode == REPLAYED && of_last_step {
        return Err("the last step replays CUDA graphs, which count as not allocated".into());
    }
    let run = run(knobs, dims)?;
    figure(&run, metric, UncertaintySources::of(&run))
}

/// Runs the steps of a recorded case, as the recording did.
pub fn run(knobs: &Knobs, dims: &Dims) -> Result<step::Run, String> {
    let (data, training) = settings(knobs, dims)?;
    let plan = RunPlan {
        world: match knobs.strategy {
            Some(_) => world(knobs, dims)?,
            None => World::ALONE,
        },
        // The recorder answers reads of a trainer's data through a `TorchDispatchMode`.
        dispatched: post::is_trainer(knobs),
        looks_at_gradients: distributed::looks_at_gradients(knobs),
        libraries: post::libraries(knobs),
        ..RunPlan::first_steps(post::steps(knobs))
    };
    run_with(knobs, dims, &data, &training, plan)
}

/// The same with other settings.
pub fn run_with(
    knobs: &Knobs,
    dims: &Dims,
    data: &Data,
    training: &Training,
    plan: RunPlan,
) -> Result<step::Run, String> {
    let family = family(knobs, dims);
    if family.is_empty() {
        return Err("the record names no family".into());
    }
    if !training.budget_is_known(&family) {
        return Err("what a compiled graph keeps within this memory budget is not known".into());
    }
    let sizes = sizes(&family, knobs, dims)?;
    let net =
        nets::build(&architecture(&family, knobs), &sizes).map_err(|error| error.to_string())?;
    let net = if knobs.aux_loss {
        Box::new(WithAuxiliary(net))
    } else {
        net
    };
    let plan = RunPlan {
        mode: match knobs.train_mode {
            Some(false) => ModelMode::Eval,
            _ => ModelMode::Train,
        },
        ..plan
    };
    Ok(step::run(&*net, data, training, machine(knobs), plan))
}

fn family(knobs: &Knobs, dims: &Dims) -> String {
    // Some records name the family only in the model, such as `lstm` and `whisper-small`.
    let named = || knobs.model.split('-').next().unwrap_or_default();
    let family = dims.get("family").and_then(Value::as_str);
    family.unwrap_or_else(named).to_string()
}

fn sizes(family: &str, knobs: &Knobs, dims: &Dims) -> Result<Sizes, String> {
    let mut sizes = Sizes::default();
    for (name, value) in dims {
        match value {
            Value::Number(n) => match n.as_u64() {
                Some(n) => sizes.set(name, n),
                None => return Err(format!("`{name}` is not a whole number")),
            },
            Value::Bool(on) => sizes.set(name, u64::from(*on)),
            Value::Array(all) => {
                sizes.set_list(name, all.iter().filter_map(Value::as_u64).collect());
            }
            // A choice, such as the `cls` of a head.
            Value::String(choice) => sizes.set(&format!("{name}={choice}"), 1),
            _ => {}
        }
    }
    // Whisper's and Mamba's own names. Whisper's heads are 64 wide.
    for (name, own, each) in [
        ("hidden", "hidden_size", 1),
        ("hidden", "d_model", 1),
        ("heads", "d_model", 64),
        ("vocab", "vocab_size", 1),
        ("state", "state_size", 1),
        ("conv", "conv_kernel", 1),
        ("layers", "num_hidden_layers", 1),
        ("layers", "enc", 1),
        ("decoder_layers", "dec", 1),
        ("audio_ctx", "mel_frames", 2),
    ] {
        if let Some(size) = sizes.get(own) {
            sizes.set(name, size / each);
        }
    }
    match (family, sizes.get("hidden"), sizes.get("heads")) {
        // The recorder leaves the width of Phi-3's heads at an equal share,
        ("phi3", Some(width), Some(heads)) => sizes.set("head_dim", width / heads.max(1)),
        // and Gemma's window at the default of the class.
        ("gemma2" | "gemma3_text", ..)
            if knobs.wdtype.is_some() && sizes.get("sliding_window").is_none() =>
        {
            sizes.set("sliding_window", 4096);
        }
        _ => {}
    }
    let mg = &knobs.mg;
    let is_megatron = knobs.is_megatron();
    let switches = [
        ("python_norms", knobs.norm == "manual"),
        ("gpt", is_megatron && mg.arch == "gpt"),
        ("shares_embeddings", is_megatron && mg.untied == Some(false)),
        ("drops", is_megatron && mg.dropout > 0.0),
        ("plain_attention", is_megatron && mg.attn == "local"),
        (
            "recompute_core_attention",
            is_megatron && mg.recompute == "selective",
        ),
        (
            "separate_accumulation",
            is_megatron && mg.gaf == Some(false),
        ),
    ];
    for (name, _) in switches.into_iter().filter(|(_, on)| *on) {
        sizes.set(name, 1);
    }
    Ok(sizes)
}

/// The registered name of a network; those of torchvision and timm are `tv:resnet50` and `timm:resnet50`.
fn architecture(family: &str, knobs: &Knobs) -> String {
    let model = &knobs.model;
    if knobs.is_megatron() {
        "megatron_gpt".to_string()
    } else if knobs.implementation == "titan" {
        "torchtitan_llama3".to_string()
    } else if model.starts_with(&format!("{family}:")) {
        model.clone()
    } else if matches!(family, "tv" | "timm") {
        format!("{family}:{model}")
    } else {
        family.to_string()
    }
}

fn machine(knobs: &Knobs) -> Machine {
    let machine = Machine {
        cudnn_workspace: knobs.cudnn_ws,
        // Some recordings compile and time no kernels.
        tunes: knobs.kernels != "noop",
        ..Machine::default()
    };
    match knobs.sm {
        90 => Machine {
            capability: (9, 0),
            multiprocessors: 132,
            ..machine
        },
        _ => machine,
    }
}

/// The mode whose steps replay CUDA graphs from the third on: only the graphs' outputs then count as allocated.
const REPLAYED: &str = "reduce-overhead";

fn compile(knobs: &Knobs) -> Compile {
    match &knobs.compile {
        Mixed::Switch(true) => Compile::Model,
        Mixed::Text(how) if how == "whole" && knobs.budget.is_some_and(|budget| budget <= 0.0) => {
            Compile::ModelAgain
        }
        Mixed::Text(how) if how == "whole" => Compile::Model,
        Mixed::Text(how) if how == "block" => Compile::Layers,
        _ => Compile::Nothing,
    }
}

fn precision(knobs: &Knobs) -> Result<Precision, String> {
    if let Some(weights) = &knobs.wdtype {
        return post::precision(weights, post::autocast(knobs));
    }
    Ok(match knobs.precision.as_str() {
        "amp_bf16_basebf16" => Precision::AmpBf16OnBf16,
        other => Precision::from_id(&other.replace('_', "-"))
            .ok_or_else(|| format!("precision `{other}` is not known"))?,
    })
}

pub fn settings(knobs: &Knobs, dims: &Dims) -> Result<(Data, Training), String> {
    let mut data = Data {
        micro_batch: knobs.mb.unwrap_or(1),
        sequence: knobs.seq.unwrap_or(1),
        padding_mask: knobs.mask,
        ..Data::default()
    };
    // The recorder leaves the attention of T5 and Swin at the libraries' default.
    let is_default = ["t5-", "swin-"]
        .iter()
        .any(|name| knobs.model.starts_with(name));
    let attention = match knobs.attn.as_deref() {
        Some("eager") if !is_default => Attention::Eager,
        None | Some("sdpa" | "eager") => Attention::Sdpa,
        Some(other) => return Err(format!("attention `{other}` is not known")),
    };
    let (freeze, train_only) = match knobs.freeze.split_first() {
        Some((first, rest)) if first == "all_but" => (Vec::new(), rest.to_vec()),
        _ => (knobs.freeze.clone(), Vec::new()),
    };
    let lora = knobs.lora.as_ref().map(|lora| Lora {
        rank: lora.r.unwrap_or(8),
        targets: lora.targets.clone(),
        exclude: (lora.exclude.iter())
            .map(|pattern| pattern.trim_matches(['.', '*']).to_string())
            .collect(),
        dropout: lora.drop,
        fp32_adapters: !knobs.lora_bf16,
        ..Lora::default()
    });
    let (checkpointing, checkpoint_every) = match &knobs.ckpt {
        Mixed::Text(how) if how == "sac_2" => (Checkpointing::Layers, 2),
        Mixed::Text(how) if how == "sac_op" => (Checkpointing::KeepHalf, 1),
        Mixed::Text(how) if how == "full" => (Checkpointing::Layers, 1),
        Mixed::Switch(true) => (Checkpointing::Layers, 1),
        _ => (Checkpointing::None, 1),
    };
    let mut training = Training {
        precision: precision(knobs)?,
        compile: compile(knobs),
        memory_budget: (knobs.budget.filter(|budget| *budget > 0.0)).unwrap_or(1.0),
        compile_mode: match knobs.mode.as_str() {
            "" | "default" => CompileMode::Default,
            REPLAYED => CompileMode::ReduceOverhead,
            mode => return Err(format!("torch.compile's mode `{mode}` is not modelled")),
        },
        optimizer: extra::optimizer(knobs)?,
        attention,
        checkpointing,
        checkpoint_every,
        accumulation: knobs.accum.unwrap_or(1),
        lora,
        freeze,
        train_only,
        dropout: knobs.dropout != Some(false),
        clip: knobs.clip,
        ema: knobs.ema.switch() == Some(true),
        zero_to_none: knobs.zero_none != Some(false),
        zero_late: knobs.zg_before_bwd,
        keep_outputs: knobs.hold_outputs,
        use_cache: knobs.use_cache,
        channels_last: knobs.chlast,
        ..Training::default()
    };
    extra::apply(knobs, &mut training)?;
    post::apply(knobs, &mut data, &mut training)?;
    distributed::apply(knobs, &mut data, &mut training)?;
    match (family(knobs, dims).as_str(), &mut training.lora) {
        ("llava", _) => {
            // The recorder gives LLaVA neither a mask nor a cache, whatever the settings say.
            data.padding_mask = false;
            training.use_cache = false;
        }
        // `add_adapter` of diffusers makes them in the type of the weights.
        ("unet", Some(lora)) if knobs.lora.is_none() => lora.fp32_adapters = false,
        _ => {}
    }
    Ok((data, training))
}
