//! What launches a run: a shell, or a scheduler wrapped around the program's own files.

use super::common::{environment, file, job_name, machines, script};
use super::job::packages;
use super::kubernetes::Volume;
use super::{File, Files, Target, kubernetes, shell, skypilot, slurm};
use headroom_base::document::Document;
use headroom_base::document::yaml;
use headroom_scenario::{Kernels, LossKernel, Problem, Scenario, systems};

/// What starts a program's `launch.sh`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Starter {
    /// The user.
    #[default]
    Shell,
    Slurm,
    Kubernetes,
    SkyPilot,
}

impl Starter {
    pub const ALL: [Self; 4] = [Self::Shell, Self::Slurm, Self::Kubernetes, Self::SkyPilot];

    pub const fn id(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::Slurm => "slurm",
            Self::Kubernetes => "kubernetes",
            Self::SkyPilot => "skypilot",
        }
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Shell => "a shell",
            Self::Slurm => "Slurm",
            Self::Kubernetes => "Kubernetes",
            Self::SkyPilot => "SkyPilot",
        }
    }

    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|starter| starter.id() == id)
    }

    /// The program's files plus their launcher, or why it cannot be launched. A scheduler's target launches itself.
    pub fn wrap(self, target: &Target, scenario: &Scenario, files: Vec<File>) -> Files {
        let starts_itself = ["slurm", "kubernetes", "trainjob", "skypilot", "ray"];
        if self == Self::Shell || starts_itself.contains(&target.id) {
            return Ok(files);
        }
        let more = match self {
            Self::Shell => Vec::new(),
            Self::Slurm => batch(scenario)?,
            Self::Kubernetes => pod(target, scenario, &files)?,
            Self::SkyPilot => task(target, scenario)?,
        };
        Ok([files, more].concat())
    }
}

fn one(problem: Problem) -> Vec<Problem> {
    vec![problem]
}

/// A batch script that runs `launch.sh` on every machine.
fn batch(scenario: &Scenario) -> Files {
    let machines = machines(scenario).map_err(one)?;
    let mut text = slurm::opening(scenario, &machines, "");
    if machines.nodes == 1 {
        text.push_str("srun bash launch.sh\n");
    } else {
        text.push_str(
            "MASTER_ADDR=$(scontrol show hostnames \"${SLURM_JOB_NODELIST:?}\" | head -n 1)\nexport MASTER_ADDR\n\
             srun --kill-on-bad-exit=1 bash -c 'NODE_RANK=$SLURM_NODEID exec bash launch.sh'\n",
        );
    }
    Ok(vec![
        script("train.sbatch", text),
        script(
            "submit.sh",
            format!("{}exec sbatch \"$@\" train.sbatch\n", shell::opening("")),
        ),
    ])
}

/// Installs the packages that a program needs in addition to PyTorch, if pip can.
fn install(target: &Target, scenario: &Scenario) -> Result<String, Vec<Problem>> {
    let own: &[&str] = match target.id {
        "plain" | "hf" | "accelerate" => &["accelerate"],
        "deepspeed" => &["accelerate", "deepspeed"],
        "trl" => &["trl"],
        "axolotl" => &["axolotl"],
        "llama-factory" => &["llamafactory"],
        "lightning" => &["lightning"],
        "swift" => &["ms-swift"],
        "unsloth" => &["unsloth"],
        "verl" => &["verl[vllm]"],
        "torchtune" => &["torchtune", "torchao"],
        "torchtitan" => &["torchtitan"],
        _ => {
            let expected = "a program that pip installs; this one needs an image of its own";
            return Err(one(Problem::new("stack.trainer", target.title, expected)));
        }
    };
    let mut all = packages(scenario);
    let training = &scenario.training;
    let liger = training.kernels == Kernels::Liger || training.loss == LossKernel::Liger;
    let more = own.iter().copied().chain(liger.then_some("liger-kernel"));
    for name in more {
        if !all.iter().any(|known| known == name) {
            all.push(name.into());
        }
    }
    let mut words = vec!["python", "-m", "pip", "install", "--quiet"];
    words.extend(all.iter().map(String::as_str));
    Ok(shell::command(&words))
}

/// Commands that leave a system's code, patched with `wiring.diff` of this folder, in `$code`; nothing for other programs.
fn checkout(target: &Target) -> Option<String> {
    let system = systems::all()
        .iter()
        .find(|known| known.target == target.id)?;
    let code = &system.code;
    let mut install = vec!["python", "-m", "pip", "install", "--quiet"];
    install.extend(code.install);
    Some(format!(
        "patch=$PWD/wiring.diff\n\
         test -d \"$code\" || git clone --quiet {repository} \"$code\"\n\
         git config --global --add safe.directory \"$code\"\n\
         git -C \"$code\" checkout --quiet {commit}\n\
         git -C \"$code\" apply --reverse --check \"$patch\" 2>/dev/null || git -C \"$code\" apply \"$patch\"\n\
         (cd -- \"$code\" && {install})\n",
        repository = code.repository,
        commit = code.commit,
        install = shell::command(&install)
    ))
}

/// A Kubernetes job in one pod, which writes the files, installs the program and starts it.
fn pod(target: &Target, scenario: &Scenario, files: &[File]) -> Files {
    let machines = machines(scenario).map_err(one)?;
    if machines.nodes > 1 {
        let expected = "1: a pod runs on one machine";
        return Err(one(Problem::new(
            "hardware.nodes",
            machines.nodes.to_string(),
            expected,
        )));
    }
    let mut text = String::from("set -euo pipefail\ncd -- \"$(mktemp -d)\"\n");
    for written in files {
        text.push_str(&shell::here(written.name, &written.contents));
    }
    let volume = match checkout(target) {
        Some(checkout) => {
            text.push_str(&format!(
                "code=/work/code\n{checkout}\
                 export REPOSITORY=$code DATA_ROOT=\"${{DATA_ROOT:-/work/data}}\"\n"
            ));
            Volume::Work
        }
        None => {
            text.push_str(&format!("{}\n", install(target, scenario)?));
            Volume::None
        }
    };
    text.push_str("exec bash launch.sh\n");
    let document = kubernetes::of_program(scenario, machines.each, text, volume);
    Ok(vec![
        file("job.yaml", yaml::write(&document)),
        script(
            "submit.sh",
            format!(
                "{}exec kubectl create -f job.yaml \"$@\"\n",
                shell::opening("")
            ),
        ),
    ])
}

/// A SkyPilot task, which brings the files to its machines.
fn task(target: &Target, scenario: &Scenario) -> Files {
    let machines = machines(scenario).map_err(one)?;
    let card = skypilot::card(scenario).map_err(one)?;
    let (install, own) = match checkout(target) {
        Some(checkout) => (
            format!("code=$HOME/code\n{}", checkout.trim_end()),
            "export REPOSITORY=\"$HOME/code\" DATA_ROOT=\"${DATA_ROOT:-$HOME/data}\"\n",
        ),
        None => (install(target, scenario)?, ""),
    };
    let run = format!(
        "set -euo pipefail\n\
         MASTER_ADDR=$(head -n 1 <<<\"$SKYPILOT_NODE_IPS\")\n\
         export MASTER_ADDR NODE_RANK=\"$SKYPILOT_NODE_RANK\"\n\
         {own}bash launch.sh\n"
    );
    let envs: Document = environment(scenario)
        .into_iter()
        .map(|(name, value)| (name, value.into()))
        .collect();
    let mut task = Document::new()
        .with("name", job_name(scenario))
        .with("num_nodes", machines.nodes)
        .with(
            "resources",
            Document::new().with("accelerators", format!("{card}:{}", machines.each)),
        );
    if envs != Document::new() {
        task = task.with("envs", envs);
    }
    let task = task
        .with("workdir", ".")
        .with("setup", format!("{install}\n"))
        .with("run", run);
    Ok(vec![
        file("task.yaml", yaml::write(&task)),
        script(
            "submit.sh",
            format!("{}exec sky launch task.yaml \"$@\"\n", shell::opening("")),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::{target, targets};
    use super::*;
    use headroom_core::estimate::Estimate;
    use headroom_scenario::presets;

    #[test]
    fn schedulers_wrap_every_program_that_pip_installs() {
        let scenario = presets::find("llama-8b-lora-24gb").unwrap().scenario();
        let mut wrapped = 0;
        for target in targets() {
            let Ok(files) = (target.write)(&scenario, &Estimate::default()) else {
                continue;
            };
            for starter in Starter::ALL {
                let Ok(all) = starter.wrap(target, &scenario, files.clone()) else {
                    continue;
                };
                assert_eq!(
                    all[..files.len()],
                    files[..],
                    "{} {}",
                    target.id,
                    starter.id()
                );
                let names: Vec<&str> = all.iter().map(|file| file.name).collect();
                let mut once = names.clone();
                once.dedup();
                assert_eq!(names, once);
                wrapped += usize::from(all.len() > files.len());
            }
        }
        assert!(wrapped > 15, "{wrapped}");
    }

    #[test]
    fn what_is_started_is_the_programs_own_script() {
        let mut scenario = presets::find("llama-8b-lora-24gb").unwrap().scenario();
        let trl = target("trl").unwrap();
        let wrap = |starter: Starter, scenario: &Scenario| {
            let files = (trl.write)(scenario, &Estimate::default()).unwrap();
            let all = starter.wrap(trl, scenario, files).unwrap();
            all.into_iter().rev().nth(1).unwrap().contents
        };
        assert!(wrap(Starter::Slurm, &scenario).contains("\nsrun bash launch.sh\n"));
        let pod = wrap(Starter::Kubernetes, &scenario);
        assert!(
            pod.contains("trl sft") && pod.contains(" trl ") && pod.contains("bash launch.sh"),
            "{pod}"
        );
        assert!(wrap(Starter::SkyPilot, &scenario).contains("RTX4090:1"));
        scenario.hardware.gpu = "t4".into();
        assert!(!wrap(Starter::SkyPilot, &scenario).contains("RTX4090"));
        let megatron = target("megatron").unwrap();
        assert!(
            Starter::Kubernetes
                .wrap(megatron, &scenario, Vec::new())
                .is_err()
        );
    }
}
