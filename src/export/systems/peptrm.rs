//! pepTRM: its strict YAML, in which one key too many is a `TypeError`, at the one place where it is read.

use super::super::common::file;
use super::super::header::header;
use super::super::{Files, Target};
use super::{Patch, System};
use crate::document::Document;
use crate::document::yaml;
use crate::estimate::Estimate;
use crate::scenario::{Precision, Problem, Scenario};

pub(super) const TARGET: Target = Target {
    id: "peptrm",
    title: "pepTRM (its own YAML)",
    versions: "jasegehring/pepTRM 143716f (torch 2.0 and newer, omegaconf 2.3)",
    differs: "",
    write,
};

const SYSTEM: System = System {
    preset: "peptrm",
    arch: "peptrm",
    said: &[
        "data.micro_batch",
        "training.precision",
        "training.accumulation",
        "training.ema",
        "training.dropout",
    ],
    dims: &[
        "hidden",
        "heads",
        "encoder_layers",
        "decoder_layers",
        "peaks",
        "places",
        "supervision_steps",
        "latent_steps",
    ],
    patches: &[
        Patch {
            path: "training.checkpointing",
            values: &["layers"],
            what: "each latent step through torch.utils.checkpoint, as in wiring.diff",
        },
        Patch {
            path: "training.checkpoint_every",
            values: &[],
            what: "each supervision step through torch.utils.checkpoint, as wiring.diff does for latent steps",
        },
        Patch {
            path: "model.dims.bins",
            values: &[],
            what: "bin_size and max_mz are constants of the loss's constructor; wiring.diff makes them arguments",
        },
    ],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let asked = SYSTEM.asked(scenario)?;
    let training = &scenario.training;
    let autocast = match training.precision {
        Precision::Fp32 => false,
        Precision::AmpFp16 => true,
        other => {
            let expected = "amp-fp16 or fp32 for this system, whatever amp_dtype says";
            return Err(vec![Problem::new(
                "training.precision",
                other.id(),
                expected,
            )]);
        }
    };
    let model = Document::new()
        .with("hidden_dim", asked.size("hidden"))
        .with("num_encoder_layers", asked.size("encoder_layers"))
        .with("num_decoder_layers", asked.size("decoder_layers"))
        .with("num_heads", asked.size("heads"))
        .with("max_peaks", asked.size("peaks"))
        .with("max_seq_len", asked.size("places"))
        .with("num_supervision_steps", asked.size("supervision_steps"))
        .with("num_latent_steps", asked.size("latent_steps"))
        .with("dropout", if training.dropout { 0.1 } else { 0.0 });
    let settings = Document::new()
        .with("learning_rate", 1.5e-4)
        .with("weight_decay", 0.01)
        .with("batch_size", scenario.data.micro_batch)
        .with("max_steps", 100_000_u64)
        .with_note("warmup_steps", 2000_u64, "not read")
        .with("use_amp", autocast)
        .with_note(
            "amp_dtype",
            "float16",
            "printed; autocast is always float16",
        )
        .with_note(
            "gradient_accumulation_steps",
            training.accumulation,
            "max_steps counts micro-batches: with 2, half the updates",
        )
        .with_note(
            "use_compile",
            false,
            "graphs would hold memory that was not counted",
        )
        .with("compile_mode", "default")
        .with("ce_weight", 1.0)
        .with_note(
            "spectrum_weight",
            0.1,
            "above zero it costs what was counted",
        )
        .with("iteration_weights", "linear")
        .with("label_smoothing", 0.1)
        .with("use_curriculum", true)
        .with("use_ema", training.ema)
        .with("ema_decay", 0.999)
        .with("log_interval", 100_u64)
        .with("eval_interval", 1000_u64)
        .with("save_interval", scenario.runtime.save_every.max(1))
        .with("checkpoint_dir", "checkpoints");
    let document = Document::new()
        .with("model", model)
        .with("training", settings)
        .with("data", Document::new().with("ms2pip_model", "HCDch2"));
    let header = header(&TARGET, scenario, estimate);
    let name = "optimized_extended.yaml";
    let config = file(name, format!("{header}{}", yaml::write(&document)));
    // The script reads this file and no other.
    let command = "cp -- \"$here/optimized_extended.yaml\" configs/optimized_extended.yaml\n\
                   exec python scripts/train_optimized.py \"$@\"\n";
    Ok(SYSTEM.files(&TARGET, scenario, estimate, &asked, command, vec![config]))
}
