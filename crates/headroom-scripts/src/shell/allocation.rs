//! What stands around a launch: schedulers' allocations, MPI, containers.

use super::launch::{Count, Launch, Launcher};
use super::options::Options;
use super::{Script, Word};

/// Nodes, processes and GPUs, as far as wrappers and directives say them.
#[derive(Clone, Debug, Default)]
pub(super) struct Around {
    nodes: Option<u64>,
    tasks: Option<u64>,
    tasks_per_node: Option<u64>,
    gpus_per_node: Option<u64>,
    gpus_per_task: Option<u64>,
    gpus: Option<u64>,
    srun: bool,
    /// `mpirun -np 8`.
    mpi: Option<u64>,
    ray: bool,
    /// `uv run`, `poetry run`: what follows may be any command that a project installs.
    pub runs_a_project: bool,
    /// A job's GPUs, as `docker run --gpus 2` or `gantry run --gpus 8` give them.
    given: Option<u64>,
}

impl Around {
    pub fn of(script: &Script) -> Self {
        let mut around = Self::default();
        for (name, value) in &script.directives {
            around.schedule(name, value);
        }
        around
    }

    /// An option of `sbatch` or `srun`.
    fn schedule(&mut self, name: &str, value: &str) {
        let number = || value.trim().parse::<u64>().ok();
        // `gpu:a100:8`, `a100:8`, `8`; `gpu:8,ssd:1`.
        let gpus = || {
            let part = value
                .split(',')
                .find(|part| part.contains("gpu"))
                .unwrap_or(value);
            let part = part.split('(').next().unwrap_or_default();
            part.rsplit(':')
                .next()
                .and_then(|last| last.trim().parse::<u64>().ok())
        };
        match name.replace('_', "-").as_str() {
            // `1-4` is a range.
            "nodes" | "N" => self.nodes = number().or(self.nodes),
            "ntasks" | "n" => self.tasks = number().or(self.tasks),
            "ntasks-per-node" | "tasks-per-node" => {
                self.tasks_per_node = number().or(self.tasks_per_node);
            }
            "gres" if value.contains("gpu") => {
                let one = value.split(',').any(|part| part == "gpu");
                self.gpus_per_node = gpus().or(one.then_some(1)).or(self.gpus_per_node);
            }
            "gpus-per-node" => self.gpus_per_node = gpus().or(self.gpus_per_node),
            "gpus-per-task" => self.gpus_per_task = gpus().or(self.gpus_per_task),
            "gpus" | "G" => self.gpus = gpus().or(self.gpus),
            _ => {}
        }
    }

    /// The words of a wrapper.
    pub fn read(&mut self, words: &[Word]) {
        let Some(first) = words.first() else { return };
        let name = first.text.rsplit('/').next().unwrap_or(&first.text);
        let rest = words.get(1..).unwrap_or_default();
        let options = Options::all(rest);
        match name {
            "srun" => {
                self.srun = true;
                for (name, value) in &options.all {
                    if value.unknown.is_none() {
                        self.schedule(name, &value.text);
                    }
                }
            }
            "mpirun" | "mpiexec" | "horovodrun" | "orterun" => {
                self.mpi = options.number(&["np", "n", "num_proc"]);
                let per_node = options.number(&["ppn", "npernode", "N"]);
                if let (Some(all), Some(per_node)) = (self.mpi, per_node)
                    && per_node > 0
                {
                    self.nodes = Some(all.div_ceil(per_node));
                }
            }
            "ray" => {
                self.ray = true;
            }
            "uv" | "poetry" | "pdm" | "pipenv" | "rye" | "hatch" | "pixi" => {
                self.runs_a_project = true;
            }
            "gantry" | "beaker" | "runai" | "rlaunch" | "jet" | "dstack" => {
                self.given = options.number(&["gpus", "gpu", "g", "num_gpus"]);
                if let Some(nodes) = options.number(&["replicas", "nodes", "num_nodes"]) {
                    self.nodes = Some(nodes);
                    self.given = self.given.map(|gpus| gpus.saturating_mul(nodes));
                }
            }
            "docker" | "podman" | "nvidia-docker" => {
                let text = options
                    .get(&["gpus"])
                    .map(|word| word.text.trim_matches(['"', '\'']).to_string());
                self.given = text.and_then(|text| match text.strip_prefix("device=") {
                    Some(devices) => Some(devices.split(',').count() as u64),
                    None => text.parse().ok(),
                });
            }
            _ => {}
        }
    }

    /// GPUs of the job that a scheduler gives.
    fn allocated(&self) -> Option<u64> {
        let nodes = self.nodes.unwrap_or(1);
        let tasks = self
            .tasks
            .or_else(|| self.tasks_per_node?.checked_mul(nodes));
        self.gpus
            .or_else(|| self.gpus_per_node?.checked_mul(nodes))
            .or_else(|| self.gpus_per_task?.checked_mul(tasks?))
    }

    /// Corrects a launch by what stands around it.
    pub fn decide(&self, launch: &mut Launch) {
        if self.ray {
            launch.launcher = Launcher::Ray;
        }
        if let (Some(processes), Launcher::Python) = (self.mpi, launch.launcher) {
            launch.gpus = Count::Known(processes);
            launch.nodes = self.nodes;
            return;
        }
        if self.srun && launch.launcher == Launcher::Python {
            launch.launcher = Launcher::Srun;
            let nodes = self.nodes;
            let tasks = self
                .tasks
                .or_else(|| self.tasks_per_node?.checked_mul(nodes.unwrap_or(1)));
            // One task that is given several GPUs starts its own processes.
            let gpus = match (self.allocated(), tasks) {
                (Some(gpus), Some(tasks)) => gpus.max(tasks),
                (Some(gpus), None) => gpus,
                (None, tasks) => tasks.or(nodes).unwrap_or(1),
            };
            launch.gpus = Count::Known(gpus);
            launch.nodes = nodes.or(Some(1));
            return;
        }
        if let Count::Unknown(_) = launch.gpus
            && let Some(gpus) = self.allocated().or(self.given)
        {
            launch.gpus = Count::Known(gpus);
            if launch.nodes.is_none() {
                launch.nodes = self.nodes.or(Some(1));
            }
        }
    }
}
