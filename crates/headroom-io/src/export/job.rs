//! A job for schedulers: its files, the packages it needs, and what each process runs.

use super::{File, plain, shell};
use headroom_core::estimate::Estimate;
use headroom_scenario::{Kernels, LossKernel, Optimizer, Problem, Quantization, Scenario};

/// What a scheduler starts, once for each GPU, by `torchrun`.
pub(super) struct Job {
    pub files: Vec<File>,
    /// The script and its arguments.
    pub words: Vec<String>,
    /// What pip must install.
    pub packages: Vec<String>,
}

/// The plain script's job.
pub(super) fn job(
    scenario: &Scenario,
    estimate: &Estimate,
    header: &str,
) -> Result<Job, Vec<Problem>> {
    let files = plain::job(scenario, estimate, header)?;
    Ok(Job {
        files,
        words: ["train.py", "train.yaml"].map(String::from).to_vec(),
        packages: packages(scenario),
    })
}

/// What pip must install for a run on PyTorch and transformers.
pub(super) fn packages(scenario: &Scenario) -> Vec<String> {
    let (major, minor) = scenario.stack.torch;
    let mut packages = vec![
        format!("torch=={major}.{minor}.*"),
        "transformers>=4.57,<6".into(),
        "pyyaml".into(),
    ];
    let training = &scenario.training;
    let four_bits = training.quantization != Quantization::None;
    let from_library = matches!(
        training.optimizer,
        Optimizer::AdamW8bit | Optimizer::PagedAdamW | Optimizer::PagedAdamW8bit
    );
    let torchao = matches!(
        training.optimizer,
        Optimizer::AdamW8bitAo | Optimizer::AdamW4bitAo | Optimizer::AdamWOffload
    );
    let liger = training.kernels == Kernels::Liger
        || matches!(training.loss, LossKernel::Liger | LossKernel::LigerLinear);
    for (needed, name) in [
        (training.lora.is_some(), "peft"),
        (four_bits || from_library, "bitsandbytes"),
        (four_bits, "accelerate"),
        (torchao, "torchao"),
        (liger, "liger-kernel"),
    ] {
        if needed {
            packages.push(name.into());
        }
    }
    packages.extend(plain::library(scenario).map(String::from));
    packages
}

impl Job {
    /// The command that installs the packages.
    pub(super) fn install(&self) -> String {
        let mut words = vec!["python", "-m", "pip", "install", "--quiet"];
        words.extend(self.packages.iter().map(String::as_str));
        shell::command(&words)
    }

    /// The script and its arguments, quoted.
    pub(super) fn quoted(&self) -> String {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        shell::command(&words)
    }

    /// A script for a bare container: writes the files, installs, and starts `torchrun` with these options.
    pub(super) fn in_container(&self, torchrun: &str) -> String {
        let mut text = String::from("set -euo pipefail\ncd -- \"$(mktemp -d)\"\n");
        for file in &self.files {
            text.push_str(&shell::here(file.name, &file.contents));
        }
        text.push_str(&format!(
            "{}\nexec torchrun {torchrun}{}\n",
            self.install(),
            self.quoted()
        ));
        text
    }
}
