//! Slurm: a batch script that starts `torchrun` on each machine.

use super::common::{Machines, exports, job_name, machines, script};
use super::header::header;
use super::job::job;
use super::{Files, Target, shell};
use headroom_core::estimate::Estimate;
use headroom_scenario::Scenario;

pub(super) const TARGET: Target = Target {
    id: "slurm",
    title: "Slurm (sbatch)",
    versions: "slurm 21.08 and newer; torch 2.4 to 2.15, transformers 4.57 to 5.23",
    differs: "",
    write,
};

fn write(scenario: &Scenario, estimate: &Estimate) -> Files {
    let header = header(&TARGET, scenario, estimate);
    let mut job = job(scenario, estimate, &header)?;
    let machines = machines(scenario).map_err(|problem| vec![problem])?;
    let (nodes, each) = (machines.nodes, machines.each);
    let mut text = opening(scenario, &machines, &header);
    let command = job.quoted();
    if nodes == 1 {
        text.push_str(&format!(
            "srun torchrun --standalone --nproc-per-node {each} {command}\n"
        ));
    } else {
        text.push_str(&format!(
            "first=$(scontrol show hostnames \"${{SLURM_JOB_NODELIST:?}}\" | head -n 1)\n\
             srun --kill-on-bad-exit=1 torchrun --nnodes {nodes} --nproc-per-node {each} \\\n  \
             --rdzv-backend c10d --rdzv-id \"${{SLURM_JOB_ID:?}}\" --rdzv-endpoint \"$first:29500\" \\\n  {command}\n"
        ));
    }
    job.files.push(script("train.sbatch", text));
    let submit = shell::opening(&header);
    job.files.push(script(
        "launch.sh",
        format!("{submit}exec sbatch \"$@\" train.sbatch\n"),
    ));
    Ok(job.files)
}

/// A batch script up to what it starts.
pub(super) fn opening(scenario: &Scenario, machines: &Machines, header: &str) -> String {
    let (nodes, each) = (machines.nodes, machines.each);
    // The batch system reads its own lines up to the first command, and copies the script elsewhere.
    let mut text = format!(
        "#!/usr/bin/env bash\n\
         #SBATCH --job-name={name}\n\
         #SBATCH --nodes={nodes}\n\
         #SBATCH --ntasks-per-node=1\n\
         #SBATCH --gpus-per-node={each}\n\
         #SBATCH --cpus-per-task={cpus}\n\
         #SBATCH --time=24:00:00\n\
         #SBATCH --output=%x-%j.out\n\
         {header}\
         # Processors and time are yours to choose; add --partition and --account where your cluster asks for them.\n\
         set -euo pipefail\n\
         cd -- \"${{SLURM_SUBMIT_DIR:?}}\"\n\
         export OMP_NUM_THREADS=\"${{SLURM_CPUS_PER_TASK:-8}}\"\n",
        name = job_name(scenario),
        cpus = each.saturating_mul(8),
    );
    text.push_str(&exports(scenario));
    text
}
