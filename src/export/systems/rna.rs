//! RNA-3E-FFI: a bash wrapper like the repository's own, whose first argument is the batch.

use super::super::{Files, Target};
use super::{Patch, System, command};
use crate::estimate::Estimate;
use crate::scenario::Scenario;

pub(super) const TARGET: Target = Target {
    id: "rna-3e-ffi",
    title: "RNA-3E-FFI (its own script)",
    versions: "SleepingLei/RNA-3E-FFI 6ccd5a7 (e3nn, PyG; unpinned)",
    differs: "",
    write,
};

const SYSTEM: System = System {
    preset: "rna-3e-ffi",
    arch: "e3-pocket",
    said: &["data.micro_batch", "training.dropout"],
    dims: &[
        "layers",
        "out",
        "0e",
        "1o",
        "2e",
        "bessel",
        "layer_norm",
        "nodes",
        "bonded",
        "nonbonded",
        "angles",
        "dihedrals",
    ],
    patches: &[
        Patch {
            path: "training.precision",
            values: &["amp-fp16"],
            what: "commit 078c38d or a later one, with --use_amp",
        },
        Patch {
            path: "training.accumulation",
            values: &[],
            what: "commit 078c38d or a later one, with --accumulation_steps",
        },
        Patch {
            path: "model.dims.multi_hop",
            values: &[],
            what: "action=argparse.BooleanOptionalAction for --use_multi_hop, which is always on as it is",
        },
    ],
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let asked = SYSTEM.asked(scenario)?;
    let irreps = format!(
        "'{}x0e + {}x1o + {}x2e'",
        asked.size("0e"),
        asked.size("1o"),
        asked.size("2e")
    );
    let dropout = if scenario.training.dropout {
        "0.05"
    } else {
        "0.0"
    };
    let mut options: Vec<(&str, String)> = vec![
        ("--hariboss_csv", "hariboss/Complexes.csv".into()),
        ("--graph_dir", "data/processed/graphs".into()),
        (
            "--embeddings_path",
            "data/processed/ligand_embeddings.h5".into(),
        ),
        ("--splits_file", "data/splits/splits.json".into()),
        ("--hidden_irreps", irreps),
        ("--output_dim", asked.size("out").to_string()),
        ("--num_layers", asked.size("layers").to_string()),
        ("--num_radial_basis", asked.size("bessel").to_string()),
        ("--dropout", dropout.into()),
        ("--batch_size", "\"$batch\"".into()),
        ("--num_epochs", "300".into()),
        ("--lr", "0.001".into()),
        ("--optimizer", "adamw".into()),
        ("--num_workers", scenario.runtime.workers.to_string()),
        (
            "--save_every",
            scenario.runtime.save_every.max(1).to_string(),
        ),
        ("--use_multi_hop", String::new()),
        ("--use_nonbonded", String::new()),
        ("--use_gate", String::new()),
    ];
    if asked.size("layer_norm") > 0 {
        options.push(("--use_layer_norm", String::new()));
    }
    let command = format!(
        "# The batch is the one that was computed for, unless the first argument is another.\n\
         batch=${{1:-{}}}\nshift $(($# > 0 ? 1 : 0))\n{}",
        scenario.data.micro_batch,
        command(&["exec", "python", "scripts/04_train_model.py"], &options)
    );
    Ok(SYSTEM.files(&TARGET, scenario, estimate, &asked, &command, vec![]))
}
