//! Records of further optimizers, losses, kernels and ways to recompute: knobs with a `feature` and its `fk`.

use serde_json::{Map, Value};

use super::simulated::{self, Figure, Metric};
use headroom_core::step;
use headroom_scenario::{
    AdapterMethod, Checkpointing, Compile, Kernels, Lora, LossKernel, LowPrecision, Optimizer,
    Precision, Quantization, Training,
};

type Object = Map<String, Value>;

pub fn predict(knobs: &Object, dims: &Object, metric: Metric) -> Result<Figure, String> {
    simulated::figure(&run(knobs, dims)?, metric, simulated::doubts(knobs, dims))
}

/// Runs three steps of a recorded case, as the recording did.
pub fn run(knobs: &Object, dims: &Object) -> Result<step::Run, String> {
    let mut plain = knobs.clone();
    // What simulated records always say.
    if !plain.contains_key("wdtype") {
        // Only records whose weights have a type of their own are of models that were told of attention.
        plain.insert("attn".into(), "sdpa".into());
    }
    plain.insert("optim".into(), "sgd".into());
    let (data, mut training) = simulated::settings(&plain)?;
    let text = |name: &str| knobs.get(name).and_then(Value::as_str).unwrap_or_default();
    let none = Object::new();
    let given = knobs.get("fk").and_then(Value::as_object).unwrap_or(&none);
    training.optimizer = optimizer(text("optim"), given)?;
    apply(text("feature"), given, &mut training)?;
    if let Some(lora) = training.lora.as_mut().filter(|_| text("optim") == "lorafa") {
        // The optimizer's constructor freezes the first matrices.
        lora.method = AdapterMethod::LoraFa;
    }
    let mut dims = dims.clone();
    if !dims.contains_key("family") {
        // Some records name the family only as the model, such as `lstm` and `whisper-small`.
        let family = text("model").split('-').next().unwrap_or_default();
        dims.insert("family".into(), family.into());
    }
    rename(&mut dims);
    if dims.get("family").and_then(Value::as_str) == Some("unet")
        && let Some(lora) = &mut training.lora
    {
        // `add_adapter` of diffusers makes them in the type of the weights.
        lora.fp32_adapters = false;
    }
    simulated::run_with(
        knobs,
        &dims,
        &data,
        &training,
        step::RunPlan::first_steps(3),
    )
}

/// Whisper's and Mamba's sizes by the names of their own configurations; Whisper's heads are 64 wide.
fn rename(dims: &mut Object) {
    let number = |name: &str| dims.get(name).and_then(Value::as_u64);
    let renamed = [
        ("hidden", number("d_model").or(number("hidden_size"))),
        ("vocab", number("vocab_size").or(number("vocab"))),
        ("state", number("state_size")),
        ("conv", number("conv_kernel")),
        ("heads", number("d_model").map(|width| width / 64)),
        ("layers", number("enc").or(number("num_hidden_layers"))),
        ("decoder_layers", number("dec")),
        ("audio_ctx", number("mel_frames").map(|frames| frames / 2)),
    ];
    for (name, value) in renamed {
        if let Some(value) = value {
            dims.insert(name.into(), value.into());
        }
    }
}

fn optimizer(name: &str, given: &Object) -> Result<Optimizer, String> {
    let rank = given.get("rank").and_then(Value::as_u64).unwrap_or(256);
    let with_gradients = given.get("og").and_then(Value::as_bool).unwrap_or(false);
    Ok(match name {
        "adamw" | "adam" => Optimizer::AdamW,
        // torchao's, compiled, makes nothing between its kernels either.
        "adamw_fused" | "ao_adamw" => Optimizer::AdamWFused,
        // LoRA-FA keeps Adam's states for each second matrix (peft/optimizers/lorafa.py).
        "adamw_loop" | "lorafa" => Optimizer::AdamWLoop,
        "sgd" => Optimizer::Sgd,
        "sgdm" => Optimizer::SgdMomentum,
        "adafactor" => Optimizer::Adafactor,
        "adafactor_hf" => Optimizer::AdafactorHf,
        "lion" => Optimizer::Lion,
        "lion_foreach" => Optimizer::LionForeach,
        "lion_pytorch" => Optimizer::LionLoop,
        "adagrad" => Optimizer::Adagrad,
        "rmsprop" => Optimizer::RmsProp,
        "muon" => Optimizer::Muon,
        "muon_mix" => Optimizer::MuonAdamW,
        "bnb_AdamW8bit" | "bnb_Adam8bit" => Optimizer::AdamW8bit,
        "bnb_PagedAdamW" | "bnb_PagedAdamW32bit" => Optimizer::PagedAdamW,
        "bnb_PagedAdamW8bit" => Optimizer::PagedAdamW8bit,
        "bnb_Adagrad" | "bnb_Adagrad32bit" => Optimizer::AdagradBnb,
        "bnb_Adagrad8bit" => Optimizer::Adagrad8bit,
        "ao_adamw8bit" => Optimizer::AdamW8bitAo,
        "ao_adamw4bit" => Optimizer::AdamW4bitAo,
        "ao_adamwfp8" => Optimizer::AdamWFp8Ao,
        "ao_cpuoffload" if with_gradients => Optimizer::AdamWOffloadGradients,
        "ao_cpuoffload" => Optimizer::AdamWOffload,
        "adam_mini" => Optimizer::AdamMini,
        "schedulefree" => Optimizer::ScheduleFree,
        "po_ADOPT" => Optimizer::Adopt,
        "po_CAME" => Optimizer::Came,
        "galore" => Optimizer::GaLore,
        "galore8" => Optimizer::GaLore8bit,
        "galore_ada" => Optimizer::GaLoreAdafactor,
        "apollo" if rank == 256 => Optimizer::Apollo,
        "apollo" if rank == 128 => Optimizer::Apollo128,
        "apollo_mini" => Optimizer::ApolloMini,
        "bnb_AdEMAMix" => Optimizer::AdEmaMix,
        "bnb_AdEMAMix8bit" => Optimizer::AdEmaMix8bit,
        "bnb_Lion8bit" => Optimizer::Lion8bit,
        "bnb_Lion" | "bnb_Lion32bit" => Optimizer::LionBnb,
        "bnb_PagedLion" | "bnb_PagedLion32bit" => Optimizer::PagedLion,
        "bnb_PagedLion8bit" => Optimizer::PagedLion8bit,
        "bnb_PagedAdEMAMix" | "bnb_PagedAdEMAMix32bit" => Optimizer::PagedAdEmaMix,
        "bnb_PagedAdEMAMix8bit" => Optimizer::PagedAdEmaMix8bit,
        "bnb_RMSprop" | "bnb_RMSprop32bit" => Optimizer::RmsPropBnb,
        "bnb_RMSprop8bit" => Optimizer::RmsProp8bit,
        "po_SOAP" => Optimizer::Soap,
        "po_Shampoo" => Optimizer::Shampoo,
        "stableadamw" => Optimizer::StableAdamW,
        "lomo" => Optimizer::Lomo,
        "adalomo" => Optimizer::AdaLomo,
        "bnb_AdamW" | "bnb_AdamW32bit" => Optimizer::AdamWBnb,
        other => return Err(format!("optimizer `{other}` is not known")),
    })
}

fn apply(feature: &str, given: &Object, training: &mut Training) -> Result<(), String> {
    let text = |name: &str| given.get(name).and_then(Value::as_str).unwrap_or_default();
    let flag = |name: &str, default| given.get(name).and_then(Value::as_bool).unwrap_or(default);
    let number = |name: &str| given.get(name).and_then(Value::as_u64);
    match feature {
        "" => {}
        "optim_in_bwd" => training.optimizer_in_backward = true,
        "lora" | "qlora" => {
            training.lora = Some(adapters(given));
            if feature == "qlora" {
                training.quantization = match (text("lib"), number("bits")) {
                    ("bnb" | "", None | Some(4)) if flag("dq", true) => Quantization::Nf4Double,
                    ("bnb" | "", None | Some(4)) => Quantization::Nf4,
                    ("", Some(8)) => Quantization::Int8,
                    ("gptq", None) => Quantization::Gptq,
                    ("awq", None) => Quantization::Awq,
                    ("aqlm", None) => Quantization::Aqlm,
                    (other, _) => {
                        return Err(format!("quantisation by `{other}` is not modelled"));
                    }
                };
                if number("bits").is_some() {
                    // Records with a number of bits are of all seven projections, and of a model that
                    // `prepare_model_for_kbit_training` has cast to fp32 but for what is quantised.
                    training.lora = Some(every_projection(given));
                    if flag("prep", true) {
                        training.precision = Precision::Fp32;
                    }
                }
            }
        }
        "peft" => peft(given, training)?,
        "bitfit" => training.train_only = vec!["bias".into(), "norm".into()],
        "int8" => {
            training.low_precision = match text("kind") {
                "mp" => LowPrecision::Int8Mixed,
                "bitnet" => LowPrecision::BitNet,
                other => {
                    return Err(format!(
                        "int8 training of the kind `{other}` is not modelled"
                    ));
                }
            };
        }
        "mxfp8" if given.is_empty() => training.low_precision = LowPrecision::MxFp8,
        "nvfp4" if given.is_empty() => training.low_precision = LowPrecision::NvFp4,
        "float8" => match text("recipe") {
            "tensorwise" => training.fp8 = true,
            "rowwise" => training.low_precision = LowPrecision::Rowwise,
            "rowwise_with_gw_hp" => training.low_precision = LowPrecision::RowwiseHigh,
            other => return Err(format!("float8 by the recipe `{other}` is not modelled")),
        },
        "qat" if given.is_empty() => training.qat = true,
        "compile" if given.is_empty() => training.compile = Compile::Model,
        "chunked_ce" => {
            training.loss_chunks = number("n").unwrap_or(8);
            training.loss = match text("style") {
                "ckpt" => LossKernel::ChunkedCheckpoint,
                "bf16logits" => LossKernel::ChunkedLoss,
                "plain" | "head" | "" | "chunk" | "linear" => LossKernel::ChunkedHead,
                other => return Err(format!("chunks of the style `{other}` are not known")),
            };
        }
        "sac" => {
            training.checkpointing = match text("mode") {
                "full" => Checkpointing::Layers,
                "save_mm" => Checkpointing::KeepMatmuls,
                "op" => Checkpointing::KeepHalf,
                "attn" | "save_attn" | "attention" | "sdpa" | "save_sdpa" => {
                    Checkpointing::KeepAttention
                }
                other => return Err(format!("selective checkpointing `{other}` is not known")),
            };
            training.checkpoint_every = number("every").unwrap_or(1);
        }
        "save_on_cpu" => training.checkpointing = Checkpointing::Offload,
        "liger" => {
            training.kernels = Kernels::Liger;
            training.loss = if flag("fused_linear_cross_entropy", true) {
                LossKernel::LigerLinear
            } else if flag("cross_entropy", false) {
                LossKernel::Liger
            } else {
                LossKernel::Library
            };
        }
        other => return Err(format!("the feature `{other}` is not modelled")),
    }
    Ok(())
}

/// Adapters on every projection of a layer.
fn every_projection(given: &Object) -> Lora {
    let all = [
        "q_proj",
        "k_proj",
        "v_proj",
        "o_proj",
        "gate_proj",
        "up_proj",
        "down_proj",
    ];
    let targets = given.get("targets").and_then(Value::as_array).map(|names| {
        let text = |name: &Value| name.as_str().map(String::from);
        names.iter().filter_map(text).collect()
    });
    Lora {
        rank: given.get("r").and_then(Value::as_u64).unwrap_or(16),
        targets: targets.unwrap_or_else(|| all.map(String::from).to_vec()),
        dropout: given
            .get("lora_dropout")
            .and_then(Value::as_f64)
            .unwrap_or(0.0),
        ..Lora::default()
    }
}

/// A record of one of PEFT's methods, with the settings that the recorder gives it.
fn peft(given: &Object, training: &mut Training) -> Result<(), String> {
    let known = [
        "autocast_adapter_dtype",
        "bs",
        "eh",
        "kind",
        "lora_dropout",
        "modules_to_save",
        "n",
        "r",
        "targets",
        "use_dora",
        "use_rslora",
    ];
    if let Some(name) = given.keys().find(|name| !known.contains(&name.as_str())) {
        return Err(format!("`{name}` of adapters is not modelled"));
    }
    let on = |name: &str| given.get(name).and_then(Value::as_bool);
    let number = |name: &str, default| given.get(name).and_then(Value::as_u64).unwrap_or(default);
    let mut lora = every_projection(given);
    lora.fp32_adapters = on("autocast_adapter_dtype").unwrap_or(true);
    let names =
        |names: &[&str]| -> Vec<String> { names.iter().map(|name| (*name).into()).collect() };
    if let Some(listed) = given.get("modules_to_save").and_then(Value::as_array) {
        lora.modules_to_save = listed
            .iter()
            .filter_map(|name| name.as_str().map(String::from))
            .collect();
    }
    lora.method = match given
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
    {
        "lora" if on("use_dora") == Some(true) => AdapterMethod::Dora,
        "lora" => AdapterMethod::Lora,
        "vera" => {
            lora.rank = number("r", 256);
            AdapterMethod::Vera
        }
        "loha" => AdapterMethod::LoHa,
        "lokr" => AdapterMethod::LoKr,
        "adalora" => {
            lora.rank = 12;
            AdapterMethod::AdaLora
        }
        "ia3" => {
            lora.targets = names(&["k_proj", "v_proj", "down_proj"]);
            AdapterMethod::Ia3
        }
        "oft" => {
            lora.block = number("bs", 32);
            AdapterMethod::Oft
        }
        "randlora" => {
            lora.rank = 32;
            AdapterMethod::RandLora
        }
        "miss" => {
            lora.rank = 64;
            AdapterMethod::Miss
        }
        "prefix" => {
            lora.rank = number("n", 30);
            AdapterMethod::Prefix
        }
        "trainable_tokens" => {
            lora.rank = 64;
            AdapterMethod::TrainedTokens
        }
        "prompt" => {
            training.prompt_tokens = number("n", 20);
            return Ok(());
        }
        "ptuning" => {
            training.prompt_tokens = number("n", 20);
            training.prompt_hidden = number("eh", 128);
            return Ok(());
        }
        "road" => AdapterMethod::Road,
        "c3a" => AdapterMethod::C3a,
        "boft" => {
            lora.targets = names(&["q_proj", "v_proj"]);
            AdapterMethod::Boft
        }
        "shira" => {
            lora.rank = number("r", 32);
            AdapterMethod::Shira
        }
        "ln" => AdapterMethod::LnTuning,
        "delora" => AdapterMethod::DeLora,
        "hira" => AdapterMethod::HiRa,
        "gralora" => AdapterMethod::GraLora,
        "pvera" => {
            lora.rank = number("r", 64);
            AdapterMethod::PVera
        }
        "vblora" => {
            lora.rank = 4;
            AdapterMethod::VbLora
        }
        "osf" => AdapterMethod::Osf,
        "fourier" => {
            lora.rank = 1000;
            lora.targets = names(&["q_proj", "v_proj"]);
            AdapterMethod::FourierFt
        }
        "waveft" => {
            lora.rank = number("n", 2592);
            AdapterMethod::WaveFt
        }
        other => return Err(format!("adapters of the kind `{other}` are not modelled")),
    };
    training.lora = Some(lora);
    Ok(())
}

fn adapters(given: &Object) -> Lora {
    let listed = given.get("targets").and_then(Value::as_array);
    let targets = listed.map(|all| {
        all.iter()
            .filter_map(|name| name.as_str().map(String::from))
            .collect()
    });
    Lora {
        rank: given.get("r").and_then(Value::as_u64).unwrap_or(16),
        targets: targets.unwrap_or_else(|| {
            [
                "q_proj",
                "k_proj",
                "v_proj",
                "o_proj",
                "gate_proj",
                "up_proj",
                "down_proj",
            ]
            .map(String::from)
            .to_vec()
        }),
        ..Lora::default()
    }
}
