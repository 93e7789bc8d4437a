//! pepTRM: its strict YAML, in which one key too many is a `TypeError`, at the one place where it is read.

use super::{Launch, files, refused};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_core::estimate::Estimate;
use headroom_io::export::common::file;
use headroom_io::export::header::header;
use headroom_io::export::{Files, Target};
use headroom_scenario::{Checkpointing, Compile, Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "peptrm",
    title: "pepTRM (its own YAML)",
    versions: "jasegehring/pepTRM 143716f, with wiring.diff applied (torch 2.3 and newer, omegaconf 2.3)",
    differs: "",
    write,
};

const PRESET: &str = "peptrm";

/// The other sections of the author's YAML.
const DATA: &str = "\
data:
  ms2pip_model: 'HCDch2'
  top_k_peaks: 50
  charge_distribution:
    2: 0.7
    3: 0.3
real_data_validation:
  enabled: true
  eval_interval: 2000
  proteometools:
    enabled: true
    data_dir: '${oc.env:DATA_ROOT,data}/proteometools'
    batch_size: 64
    num_batches: 20
    max_samples: 5000
  nine_species:
    enabled: true
    data_dir: '${oc.env:DATA_ROOT,data}/nine_species'
    batch_size: 64
    num_batches: 20
    max_samples: 5000
    use_balanced: true
";

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let mut launch = Launch::of(PRESET, scenario)?;
    let training = &scenario.training;
    let (autocast, half) = match training.precision {
        // Without autocast the type is not read, and stays the author's.
        Precision::Fp32 => (false, "bfloat16"),
        Precision::AmpFp16 => (true, "float16"),
        Precision::AmpBf16 => (true, "bfloat16"),
        other => {
            return Err(refused(
                "training.precision",
                other.id(),
                "amp-fp16, amp-bf16 or fp32 for this system",
            ));
        }
    };
    launch.needs_patch("--config: the script reads one file of the repository and no other");
    launch.needs_patch("clean_data_ratio: the curriculum hands it to a dataset that does not take it, which ends the first step");
    let mut sized = |key: &str, dim: &str, author: u64| launch.sized(key, dim, author);
    let mut model = Document::new()
        .with("hidden_dim", sized("hidden_dim", "hidden", 384))
        .with(
            "num_encoder_layers",
            sized("num_encoder_layers", "encoder_layers", 3),
        )
        .with(
            "num_decoder_layers",
            sized("num_decoder_layers", "decoder_layers", 3),
        )
        .with("num_heads", sized("num_heads", "heads", 6))
        .with("max_peaks", sized("max_peaks", "peaks", 100))
        .with("max_seq_len", sized("max_seq_len", "places", 35))
        .with(
            "num_supervision_steps",
            sized("num_supervision_steps", "supervision_steps", 8),
        )
        .with(
            "num_latent_steps",
            sized("num_latent_steps", "latent_steps", 6),
        );
    let dropout = if training.dropout { 0.1 } else { 0.0 };
    launch.value("dropout", "0.1", dropout);
    model = model.with("dropout", dropout);
    if training.checkpointing != Checkpointing::None {
        let step = match launch.size("checkpoint_supervision") {
            0 => "latent",
            _ => "supervision",
        };
        launch.flag("recompute", step);
        model = model.with("recompute", step);
    }
    // Micro-batches are counted, not updates.
    let save = scenario.runtime.save_every;
    let save = save.map_or(u64::from(u32::MAX), |every| {
        every.get().saturating_mul(training.accumulation)
    });
    let rate = launch.learning_rate(scenario, 1.5e-4);
    // The loop counts micro-batches, and its cosine ends after as many of them.
    let updates = launch.updates(scenario, 100_000)?;
    let steps = updates.saturating_mul(training.accumulation);
    let compiles = training.compile != Compile::Nothing;
    let mut settings = Document::new()
        .with("learning_rate", rate)
        .with("weight_decay", 0.01)
        .with("batch_size", scenario.data.micro_batch)
        .with_note(
            "max_steps",
            steps,
            "micro-batches: the updates times gradient_accumulation_steps",
        )
        .with_note("warmup_steps", 2000_u64, "read with count_updates only")
        .with("use_amp", autocast)
        .with_note("amp_dtype", half, "read with autocast_as_named only")
        .with_note(
            "gradient_accumulation_steps",
            training.accumulation,
            "the curriculum's stages count micro-batches too",
        )
        .with("use_compile", compiles)
        .with("compile_mode", training.compile_mode.id())
        .with("ce_weight", 1.0)
        .with_note("spectrum_weight", 0.0, "the curriculum raises it")
        .with("iteration_weights", "linear")
        .with("label_smoothing", 0.1)
        .with("use_curriculum", true)
        .with("use_ema", training.ema)
        .with("ema_decay", 0.999)
        .with("log_interval", 100_u64)
        .with("eval_interval", 1000_u64)
        .with("save_interval", save)
        .with("checkpoint_dir", "checkpoints_optimized")
        .with("device", "cuda");
    launch.value("batch_size", "80", scenario.data.micro_batch);
    launch.value("use_amp", "true", autocast);
    if half == "float16" {
        launch.value("amp_dtype", "bfloat16, not read", half);
    }
    launch.value("gradient_accumulation_steps", "1", training.accumulation);
    launch.value("use_compile", "true", compiles);
    launch.value("learning_rate", "0.00015", rate);
    launch.value("max_steps", "100000", steps);
    if training.accumulation > 1 {
        launch.needs_patch("training.count_updates: without it the cosine ends with half of its way, and warmup_steps are not read");
        launch.flag("count_updates", true);
        settings = settings.with("count_updates", true);
    }
    launch.value("use_ema", "true", training.ema);
    launch.value("save_interval", "5000", save);
    if training.precision == Precision::AmpBf16 {
        launch.needs_patch("training.precision: training.autocast_as_named");
        launch.flag("autocast_as_named", true);
        settings = settings.with("autocast_as_named", true);
    }
    match launch.size("bins") {
        0 => launch.note(
            "The spectrum loss is counted as none: keep the curriculum from raising its weight",
        ),
        bins => {
            launch.needs_patch("training.rendered_spectra: the loss of the guide, which is not the one that the trainer imports");
            launch.flag("rendered_spectra", true);
            settings = settings.with("rendered_spectra", true);
            if bins != 20_000 {
                // The guide's step: coarser bins over the masses of b and y ions.
                let max_mz = 1500.0;
                let bin = bin_size(max_mz, bins);
                launch.flag("bin_size", bin);
                launch.flag("max_mz", max_mz);
                settings = settings.with("bin_size", bin).with("max_mz", max_mz);
            }
        }
    }
    let document = Document::new()
        .with("model", model)
        .with("training", settings);
    let header = header(&TARGET, scenario, estimate);
    let differs = yaml::comment(&launch.differences);
    let name = "peptrm.yaml";
    let text = format!("{header}{differs}{}{DATA}", yaml::write(&document));
    let config = file(name, text);
    let command = "exec python scripts/train_optimized.py --config \"$here/peptrm.yaml\" \"$@\"\n";
    Ok(files(
        &TARGET,
        scenario,
        estimate,
        &launch,
        command,
        vec![config],
    ))
}

/// The width that gives exactly this many bins; the loss rounds their number down.
pub(super) fn bin_size(max_mz: f64, bins: u64) -> f64 {
    let even = max_mz / bins as f64;
    if (max_mz / even) as u64 == bins {
        even
    } else {
        max_mz / (bins as f64 + 0.5)
    }
}
