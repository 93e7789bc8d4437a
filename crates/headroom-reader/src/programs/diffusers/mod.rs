//! diffusers' example scripts and PEFT's image examples, behind `accelerate launch`, `torchrun` or `python`; and people's own
//! scripts that kept their flags.

mod scripts;

use headroom_scripts::shell::{Launch, Launcher};

use self::scripts::{Kind, Script};
use super::calls;
use super::diffusion::{autocast, weights};
use super::launched;
use crate::documents;
use crate::fact::Fact;
use crate::facts::Facts;
use crate::keys::Keys;
use crate::program::{Form, Program, Source};
use crate::words::{
    Adapter, Attention, Checkpointing, Compute, DataParallel, Offload, Strategy, Task, Trained,
    Weights,
};

pub const PROGRAM: Program = Program {
    id: "diffusers",
    name: "diffusers",
    read,
};

const DEFAULT: &str = "the script's parser";

/// The layers that a script adapts where no argument says so.
pub fn adapted(script: &str) -> Option<&'static [&'static str]> {
    scripts::named(script).map(|script| script.targets)
}

/// Flags that people's own scripts keep from the examples.
const MARKS: &[&str] = &[
    "instance_data_dir",
    "instance_prompt",
    "with_prior_preservation",
    "train_batch_size",
    "validation_prompt",
    "max_train_steps",
    "use_8bit_adam",
    "enable_xformers_memory_efficient_attention",
    "checkpoints_total_limit",
    "lr_warmup_steps",
    "center_crop",
    "guidance_scale",
    "weighting_scheme",
    "resolution",
    "conditioning_image_column",
];

/// What changes memory and has no setting.
const NOT_MODELLED: &[(&str, &str)] = &[
    (
        "with_prior_preservation",
        "every step has as many images of the class as of the subject",
    ),
    (
        "offload",
        "the VAE and the text encoders are on the host while they are not used",
    ),
    (
        "do_fp8_training",
        "the operands of matrix products are in fp8; weights stay as they are",
    ),
    (
        "controlnet_model_name_or_path",
        "the ControlNet starts from another one",
    ),
    ("set_grads_to_none", "gradients are freed after a step"),
    (
        "train_text_encoder_ti",
        "the embeddings of new tokens are trained as well",
    ),
    (
        "use_fsdp_text_encoder",
        "the text encoder is divided over the GPUs",
    ),
    (
        "misaligned_pairs_D",
        "the discriminator sees a second set of pairs",
    ),
    ("report_to_memory", "memory is traced"),
    (
        "enable_model_cpu_offload",
        "parts are on the host while they are not used",
    ),
    ("enable_slicing", "the VAE works image by image"),
    ("enable_tiling", "the VAE works in parts"),
];

fn read(source: &Source) -> Option<Facts> {
    let Form::Command { launch, flags } = &source.form else {
        return None;
    };
    let path = launch.program.text.as_str();
    let known = scripts::named(path);
    let images = flags.has("pretrained_model_name_or_path")
        || flags.has("pretrained_teacher_model")
        || flags.has("pretrained_decoder_model_name_or_path")
        || flags.has("pretrained_prior_model_name_or_path")
        || known.is_some_and(|script| script.model.is_some());
    if !images && known.is_none() {
        return None;
    }
    let marks = MARKS.iter().filter(|key| flags.has(key)).count();
    // Names like `train_controlnet.py` are unmistakable; another script needs the examples' flags.
    if known.is_none() && (marks < 3 || flags.has("per_device_train_batch_size")) {
        return None;
    }
    let own = known.is_none() && calls::is_python(path) && source.beside.text(path).is_some();
    if own {
        return None;
    }
    Some(facts(source, launch, flags, known))
}

fn facts(source: &Source, launch: &Launch, flags: &Keys, known: Option<&Script>) -> Facts {
    let flax = known.is_some_and(|script| script.flax);
    let mut facts = Facts::of(if flax { "flax" } else { PROGRAM.id });
    facts.task = Fact::follows(Task::Diffusion, "its script");
    facts.model = flags
        .text("pretrained_inpaint_model_name_or_path")
        .or(flags.text("pretrained_model_name_or_path"))
        .or(flags.text("pretrained_teacher_model"))
        .or(flags.text("pretrained_decoder_model_name_or_path"))
        .or(flags.text("pretrained_prior_model_name_or_path"))
        .or(flags.text("model_config_name_or_path"));
    if let Some(model) = known.and_then(|script| script.model) {
        facts.model = std::mem::take(&mut facts.model).or_default(model.into(), DEFAULT);
    }
    sizes(flags, known, &mut facts);
    launched::apply(launch, flags, source.beside, &mut facts);
    if facts.strategy.is_unsaid() {
        // Accelerate's own file may be on the machine; without one a copy is on each GPU.
        let data = match launch.launcher {
            Launcher::Python => DataParallel::None,
            _ => DataParallel::Ddp,
        };
        facts.strategy = Fact::default_of(Strategy::from(data), "accelerate launch");
    }
    facts.offload = std::mem::take(&mut facts.offload).or_default(Offload::None, DEFAULT);
    method(flags, known, &mut facts);
    precision(source, flags, known, &mut facts);
    facts.optimizer = optimizer(flags);
    facts.ema = flags.switch("use_ema").or_default(false, DEFAULT);
    facts.checkpointing = flags
        .switch("gradient_checkpointing")
        .map(|on| {
            if on {
                Checkpointing::On
            } else {
                Checkpointing::Off
            }
        })
        .or_default(Checkpointing::Off, DEFAULT);
    let on = |key: &str| flags.switch(key).value() == Some(&true);
    facts.attention = if on("enable_xformers_memory_efficient_attention") {
        Fact::read(
            Attention::Xformers,
            "enable_xformers_memory_efficient_attention",
        )
    } else if on("enable_flash_attention") {
        Fact::read(Attention::Flash, "enable_flash_attention")
    } else {
        Fact::default_of(Attention::Sdpa, "diffusers")
    };
    facts.text_encoders_trained = flags
        .switch("train_text_encoder")
        .or_default(false, DEFAULT);
    facts.cached_latents = flags.switch("cache_latents").or_default(false, DEFAULT);
    let cached = on("pre_compute_text_embeddings") || on("remote_text_encoder");
    facts.cached_text = if cached {
        Fact::read(true, "pre_compute_text_embeddings")
    } else {
        Fact::default_of(false, DEFAULT)
    };
    let validated = [
        "validation_prompt",
        "validation_prompts",
        "num_validation_images",
        "validation_image",
        "val_image_url",
        "validation_dataset_name",
    ];
    let samples = validated.iter().any(|key| flags.has(key))
        || known.is_some_and(|script| script.name.contains("unconditional"));
    facts.evaluation = Fact::follows(samples, "validation_prompt");
    for (key, what) in NOT_MODELLED {
        let off = flags.switch(key).value() == Some(&false);
        let empty = flags.text(key).value().is_some_and(|text| text == "None");
        if flags.has(key) && !off && !empty && flags.text(key).is_known() {
            facts.not_modelled.push(format!("{key}: {what}"));
        }
    }
    if flax {
        facts
            .notes
            .push("it is a script of JAX; memory is estimated as PyTorch's".into());
    }
    facts
}

fn sizes(flags: &Keys, known: Option<&Script>, facts: &mut Facts) {
    let default = |fact: Fact<u64>, of: fn(&Script) -> u64| match known {
        Some(script) => fact.or_default(of(script), DEFAULT),
        None => fact,
    };
    facts.micro_batch = default(
        flags
            .whole("train_batch_size")
            .or(flags.whole("batch_size")),
        |script| script.batch,
    );
    facts.accumulation = flags
        .whole("gradient_accumulation_steps")
        .or_default(1, DEFAULT);
    let square = flags.largest("resolution");
    let height = flags.whole("height").or(flags.whole("video_height"));
    let width = flags.whole("width").or(flags.whole("video_width"));
    facts.height = default(height.or(square.clone()), |script| script.size.0);
    facts.width = default(width.or(square), |script| script.size.1);
    let frames = flags.whole("max_num_frames").or(flags.whole("num_frames"));
    facts.frames = match known.and_then(|script| script.frames) {
        Some(usual) => frames.or_default(usual, DEFAULT),
        None => frames,
    };
    facts.sequence = flags.whole("max_sequence_length");
    if let Some(longest) = known.and_then(|script| script.sequence) {
        facts.sequence = std::mem::take(&mut facts.sequence).or_default(longest, DEFAULT);
    }
}

/// What is trained: by the script, or by PEFT's flags in scripts of the same names.
fn method(flags: &Keys, known: Option<&Script>, facts: &mut Facts) {
    let on = |key: &str| flags.switch(key).value() == Some(&true);
    let peft = [
        ("use_boft", Adapter::Boft, None),
        ("use_oft", Adapter::Oft, Some(("oft_r", 8))),
        ("use_hra", Adapter::Hra, Some(("hra_r", 8))),
        ("use_lokr", Adapter::Lokr, Some(("lokr_r", 8))),
        ("use_loha", Adapter::Loha, Some(("loha_r", 8))),
        ("use_lora", Adapter::Lora, Some(("lora_r", 8))),
    ];
    if let Some((key, adapter, rank)) = peft.into_iter().find(|(key, ..)| on(key)) {
        facts.adapter = Fact::read(Some(adapter), key);
        if let Some((name, usual)) = rank {
            facts.rank = flags.whole(name).or_default(usual, "PEFT's example");
        }
        let control = known.is_some_and(|script| script.name.contains("controlnet"));
        let name = adapter.word().to_uppercase();
        facts.trained = if control {
            Fact::follows(
                Trained::Part(format!(
                    "{name} adapters (with biases of the adapted layers) and the light controlnet (its own small conv encoder)"
                )),
                "PEFT's example",
            )
        } else {
            Fact::follows(Trained::Adapters, key)
        };
        let targets: &[&str] = if control {
            &["to_q", "to_v", "to_k", "query", "value", "key"]
        } else {
            &[
                "to_q",
                "to_v",
                "to_k",
                "query",
                "value",
                "key",
                "to_out.0",
                "add_k_proj",
                "add_v_proj",
            ]
        };
        let targets = targets.iter().map(|target| (*target).to_string()).collect();
        facts.targets = Fact::default_of(targets, "PEFT's example");
        return;
    }
    let Some(script) = known else {
        if flags.has("rank") || flags.has("lora_rank") {
            facts.adapter = Fact::read(Some(Adapter::Lora), "rank");
            facts.rank = flags.whole("rank").or(flags.whole("lora_rank"));
            facts.trained = Fact::follows(Trained::Adapters, "rank");
        } else {
            facts.adapter = Fact::follows(None, "no rank");
            facts.trained = Fact::Unknown("the script is not here".into());
        }
        return;
    };
    match script.kind {
        Kind::Lora => {
            let dora = on("use_dora");
            let adapter = if dora { Adapter::Dora } else { Adapter::Lora };
            facts.adapter = Fact::follows(Some(adapter), script.name);
            facts.rank = flags
                .whole("rank")
                .or(flags.whole("lora_rank"))
                .or_default(script.rank, DEFAULT);
            let usual = script
                .targets
                .iter()
                .map(|target| (*target).to_string())
                .collect();
            facts.targets = flags
                .list("lora_layers")
                .or(flags.list("lora_target_modules"))
                .or_default(usual, DEFAULT);
            facts.trained = Fact::follows(Trained::Adapters, script.name);
        }
        Kind::Full(part) | Kind::FullShort(part) => {
            facts.adapter = Fact::follows(None, script.name);
            let with_text = on("train_text_encoder");
            facts.trained = if part.is_empty() {
                Fact::follows(Trained::All, script.name)
            } else if with_text {
                let words = format!("all of the {part} and the text encoder");
                Fact::read(Trained::Part(words), "train_text_encoder")
            } else {
                Fact::follows(Trained::Part(format!("all of the {part}")), script.name)
            };
        }
        Kind::Beside(part) => {
            facts.adapter = Fact::follows(None, script.name);
            facts.trained = Fact::follows(Trained::Part(part.into()), script.name);
        }
        Kind::Tokens => {
            facts.adapter = Fact::follows(None, script.name);
            let words = "the embeddings of new tokens";
            facts.trained = Fact::follows(Trained::Part(words.into()), script.name);
        }
    }
}

fn precision(source: &Source, flags: &Keys, known: Option<&Script>, facts: &mut Facts) {
    let said = flags.text("mixed_precision");
    let named = said.value().map(String::as_str) != Some("None");
    let own = if named {
        said.and_then(|name| autocast(name))
    } else {
        Fact::Unsaid
    };
    // The script's own flag is stronger than the launcher's.
    let by_launcher = std::mem::take(&mut facts.compute);
    let compute = own
        .or(by_launcher)
        .or_default(Compute::Fp32, "Accelerate's mixed_precision");
    let short = compute.clone().map(|compute| match compute {
        Compute::Bf16 | Compute::Bf16Autocast | Compute::Bf16Fp8 => Weights::Bf16,
        Compute::Fp16 | Compute::Fp16Autocast => Weights::Fp16,
        _ => Weights::Fp32,
    });
    facts.compute = compute;
    let full = matches!(
        known.map(|script| script.kind),
        Some(Kind::Full(_) | Kind::Beside(_))
    ) && facts.adapter.value() == Some(&None);
    if let Some(file) = flags.text("bnb_quantization_config_path").value() {
        let four = match source
            .beside
            .text(file)
            .as_deref()
            .and_then(documents::read)
        {
            Some(keys) => match keys.switch("load_in_8bit").value() {
                Some(true) => Weights::Int8,
                _ => keys
                    .text("bnb_4bit_quant_type")
                    .value()
                    .and_then(|kind| weights(kind))
                    .unwrap_or(Weights::Fp4),
            },
            None => Weights::Nf4,
        };
        facts.weights = Fact::follows(four, "bnb_quantization_config_path");
        facts.base_dtype = facts.weights.clone();
        if facts.adapter.value() == Some(&Some(Adapter::Lora)) && four != Weights::Int8 {
            facts.adapter = Fact::read(Some(Adapter::Qlora), "bnb_quantization_config_path");
        }
        return;
    }
    if known.is_none() && facts.adapter.value() == Some(&None) {
        return;
    }
    if known.is_some_and(|script| script.name == "train_dreambooth_lora_flux_miniature") {
        facts.weights = Fact::default_of(Weights::Nf4, "the script's BitsAndBytesConfig");
        facts.base_dtype = facts.weights.clone();
        facts.adapter = Fact::default_of(Some(Adapter::Qlora), "the script's BitsAndBytesConfig");
        return;
    }
    if known.is_some_and(|script| script.kind == Kind::Lora) && facts.rank.is_known() {
        // `cast_training_params` is for fp16; PEFT makes adapters in the type of their layer.
        facts.fp32_adapters = facts
            .compute
            .clone()
            .map(|compute| compute != Compute::Bf16Autocast);
    }
    facts.weights = if full {
        facts.base_dtype = short;
        Fact::default_of(Weights::Fp32, DEFAULT)
    } else {
        facts.base_dtype = short.clone();
        short
    };
}

fn optimizer(flags: &Keys) -> Fact<String> {
    let on = |key: &str| flags.switch(key).value() == Some(&true);
    let name = flags
        .text("optimizer")
        .map(|name| name.to_ascii_lowercase());
    let adamw = name.value().is_none_or(|name| name == "adamw");
    if on("use_8bit_adam") && adamw {
        Fact::read("adamw8bit".into(), "use_8bit_adam")
    } else if on("use_adafactor") {
        Fact::read("adafactor".into(), "use_adafactor")
    } else {
        name.or_default("adamw".into(), DEFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::check;

    #[test]
    fn a_full_unet_keeps_fp32_weights_under_autocast() {
        check(
            "run.sh",
            "export M=runwayml/stable-diffusion-v1-5\naccelerate launch --mixed_precision=bf16 train_text_to_image.py \\
              --pretrained_model_name_or_path=$M --dataset_name=a/b --resolution=768 --use_ema --gradient_checkpointing\n",
            &[
                ("outcome", "estimate"),
                ("micro_batch", "16"),
                ("height", "768"),
                ("weights", "fp32"),
                ("compute", "bf16 autocast"),
                ("trained", "all of the unet"),
                ("strategy", "ddp"),
                ("ema", "true"),
            ],
        );
    }

    #[test]
    fn the_frozen_base_of_lora_is_in_the_type_of_mixed_precision() {
        let text = "accelerate launch train_dreambooth_lora_sdxl.py --pretrained_model_name_or_path=a/b \\
          --mixed_precision=fp16 --use_8bit_adam --train_batch_size=1\n";
        check(
            "run.sh",
            text,
            &[
                ("weights", "fp16"),
                ("compute", "fp16 autocast"),
                ("height", "1024"),
                ("rank", "4"),
                ("optimizer", "adamw8bit"),
            ],
        );
        let plain = text.replace("--mixed_precision=fp16", "");
        check(
            "run.sh",
            &plain,
            &[("weights", "fp32"), ("compute", "fp32")],
        );
    }

    #[test]
    fn what_an_own_script_trains_is_asked() {
        check(
            "run.sh",
            "accelerate launch --num_processes 2 train_mine.py --pretrained_model_name_or_path=a/b --instance_data_dir=d \\
              --resolution=512 --train_batch_size=1 --max_train_steps=10 --mixed_precision=bf16\n",
            &[("outcome", "question"), ("asks", "trained")],
        );
    }

    #[test]
    fn videos_have_the_sizes_of_their_scripts() {
        check(
            "run.sh",
            "accelerate launch train_cogvideox_lora.py --pretrained_model_name_or_path THUDM/CogVideoX-2b --rank 64 \\
              --mixed_precision bf16 --train_batch_size 1\n",
            &[
                ("height", "480"),
                ("width", "720"),
                ("frames", "49"),
                ("rank", "64"),
            ],
        );
    }
}
