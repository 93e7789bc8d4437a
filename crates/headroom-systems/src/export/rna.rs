//! RNA-3E-FFI: a bash wrapper like the repository's own, whose first argument is the batch.

use std::num::NonZero;

use super::{Launch, command, files};
use headroom_core::estimate::Estimate;
use headroom_io::export::{Files, Target};
use headroom_scenario::{Checkpointing, Precision, Scenario};

pub(super) const TARGET: Target = Target {
    id: "rna-3e-ffi",
    title: "RNA-3E-FFI (its own script)",
    versions: "SleepingLei/RNA-3E-FFI 6ccd5a7 (e3nn, PyG; torch up to 2.5, newer with wiring.diff applied)",
    differs: "",
    write,
};

const PRESET: &str = "rna-3e-ffi";

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let mut launch = Launch::of(PRESET, scenario)?;
    let workers = scenario.runtime.workers;
    if scenario.stack.torch > (2, 5) {
        launch.needs_patch("torch 2.6 and newer load no graph without it");
    }
    let irreps = format!(
        "'{}x0e + {}x1o + {}x2e'",
        launch.size("0e"),
        launch.size("1o"),
        launch.size("2e")
    );
    let [out, layers, bessel] = ["out", "layers", "bessel"].map(|name| launch.size(name));
    let dropout = if scenario.training.dropout {
        "0.05"
    } else {
        "0.0"
    };
    let mut options: Vec<(&str, String)> = vec![
        ("--hariboss_csv", "hariboss/Complexes.csv".into()),
        (
            "--graph_dir",
            "\"${DATA_ROOT:-data}/processed/graphs\"".into(),
        ),
        (
            "--embeddings_path",
            "\"${DATA_ROOT:-data}/processed/ligand_embeddings.h5\"".into(),
        ),
        (
            "--splits_file",
            "\"${DATA_ROOT:-data}/splits/splits.json\"".into(),
        ),
        launch.option("--hidden_irreps", "'32x0e + 16x1o + 8x2e'", irreps),
        launch.option("--output_dim", "1536", out),
        launch.option("--num_layers", "4", layers),
        launch.option("--num_radial_basis", "8", bessel),
        launch.option("--dropout", "0.05", dropout),
        ("--batch_size", "\"$batch\"".into()),
        launch.option(
            "--num_epochs",
            "300",
            scenario.runtime.epochs.map_or(300, NonZero::get),
        ),
        launch.rate("--lr", scenario, "0.001"),
        launch.option("--num_workers", "2", workers),
        ("--save_every", "3".into()),
    ];
    options.push(if launch.size("multi_hop") > 0 {
        ("--use_multi_hop", String::new())
    } else {
        launch.flag("--no-use_multi_hop", "")
    });
    options.push(("--use_nonbonded", String::new()));
    options.push(("--use_gate", String::new()));
    if launch.size("layer_norm") > 0 {
        options.push(("--use_layer_norm", String::new()));
    } else {
        launch.value("--use_layer_norm", "given", "not given");
    }
    if scenario.training.precision == Precision::AmpFp16 {
        options.push(launch.flag("--use_amp", ""));
    }
    if scenario.training.accumulation > 1 {
        options.push(launch.flag("--accumulation_steps", scenario.training.accumulation));
    }
    if scenario.data.batch_max > 0 {
        options.push(launch.flag("--max_edges", scenario.data.batch_max));
    }
    if scenario.training.checkpointing != Checkpointing::None {
        options.push(launch.flag("--recompute_layers", ""));
    }
    if !scenario.training.clip {
        options.push(launch.flag("--grad_clip", "0"));
    }
    let batch = launch.value("--batch_size", "2", scenario.data.micro_batch);
    let command = format!(
        "# The batch is the one that was computed for, unless the first argument is another.\n\
         batch=${{1:-{batch}}}\nshift $(($# > 0 ? 1 : 0))\n{}",
        command("exec python scripts/04_train_model.py", &options)
    );
    Ok(files(
        &TARGET,
        scenario,
        estimate,
        &launch,
        &command,
        vec![],
    ))
}
