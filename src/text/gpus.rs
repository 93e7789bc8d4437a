//! Texts about several GPUs.

use headroom_base::mesh::Mesh;

pub const PER_GPU: &str = "What each GPU holds";
pub const PER_GPU_ABOUT: &str = "The fullest GPU decides whether the job fits.";
pub const PIPELINE: &str = "When each stage computes";

/// The description of the pipeline chart.
pub fn pipeline_about(unit: &str, micro_batches: usize, of: u64, waits: f64) -> String {
    let waits = 100.0 * waits;
    let first = if micro_batches as u64 == of {
        String::new()
    } else {
        format!(" The first {micro_batches} of {of} micro-batches are drawn.")
    };
    format!(
        "One row per stage, in {unit}; numbers are micro-batches. Over a full step each GPU is idle {waits:.0} % of the time.{first}"
    )
}

/// "2 tensor parallel × 4 shards × 2 stages. Framed GPUs split each matrix among them."
pub fn groups(mesh: &Mesh, framed: bool) -> String {
    let named = [
        (mesh.tensor, "tensor parallel"),
        (mesh.context, "context parallel"),
        (mesh.shard, "shards"),
        (mesh.data, "replicas"),
        (mesh.stages, "pipeline stages"),
    ];
    let named = named.iter().filter(|(size, _)| *size > 1);
    let named: Vec<String> = named.map(|(size, name)| format!("{size} {name}")).collect();
    if named.is_empty() {
        return String::new();
    }
    let experts = match mesh.expert {
        0 | 1 => String::new(),
        many => format!("; experts over {many}"),
    };
    let split = match (mesh.tensor > 1, mesh.context > 1) {
        _ if !framed => "",
        (true, true) => ". Framed GPUs split matrices and sequences among them",
        (true, false) => ". Framed GPUs split each matrix among them",
        _ => ". Framed GPUs split each sequence among them",
    };
    format!("{}{experts}{split}.", named.join(" × "))
}

/// "Machine 3", "Machines 1–16".
pub fn machines(first: u32, last: u32) -> String {
    if first == last {
        format!("Machine {first}")
    } else {
        format!("Machines {first}–{last}")
    }
}

/// The omitted machines.
pub fn more_machines(count: u32) -> String {
    format!("and {count} more machines")
}

/// The GPUs of a `DataParallel` process.
pub const fn of_copies(others: bool) -> &'static str {
    if others { "Other GPUs" } else { "First GPU" }
}

pub const EVERY_GPU: &str = "Every GPU";
