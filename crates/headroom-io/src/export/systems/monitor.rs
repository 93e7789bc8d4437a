//! Watching a run: from beside it, and in the program's own loop.

use super::super::File;
use super::super::common::script;
use headroom_scenario::{Precision, Scenario};

/// A script that prints what GPUs and processes hold.
pub(super) fn monitor() -> File {
    script("monitor.sh", MONITOR.into())
}

const MONITOR: &str = "\
#!/usr/bin/env bash
# Beside a run: memory and use of every GPU, and after each minute what each process holds. monitor.sh [SECONDS]
set -euo pipefail
seconds=${1:-2}
nvidia-smi dmon -s mu -d \"$seconds\" &
trap 'kill \"$!\" 2>/dev/null || true' EXIT
while sleep 60; do
  nvidia-smi --query-compute-apps=pid,used_memory --format=csv
done
";

/// What to look at while it runs, and what this run should show.
pub(super) fn watching(scenario: &Scenario) -> String {
    let precision = scenario.training.precision;
    let computes = match precision {
        Precision::AmpFp16 => "torch.float16",
        Precision::AmpBf16 => "torch.bfloat16",
        Precision::Fp64 => "torch.float64",
        _ => "torch.float32",
    };
    format!(
        "## While it runs\n\n\
         - `bash monitor.sh` prints `nvidia-smi dmon -s mu`, and what each process holds.\n\
         - With wiring.diff, `LOG_MEMORY=1 bash launch.sh` prints the peak of each epoch (of each logged step where the loop has no \
         epochs), resets the peak's statistics after it, and shows what is free on the card with `torch.cuda.mem_get_info`.\n\
         - The same line is the check of AMP: linear layers should compute `{computes}`; any other type says that autocast is not \
         as it was computed for.\n"
    )
}
