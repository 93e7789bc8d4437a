//! Launchers: how many processes a command starts on which GPUs, and what it gives to the program.

use super::{Command, Script, Word};
use crate::Beside;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// `python train.py`: one process.
    Python,
    Torchrun,
    Accelerate,
    Deepspeed,
    /// A program's own command, such as `axolotl train`, `llamafactory-cli train`, `swift sft`.
    Program,
    Srun,
    Ray,
}

/// A number of GPUs, as far as a command says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Count {
    Known(u64),
    /// Every visible GPU, or one that depends on what was not given: why.
    Unknown(String),
}

/// A command that starts a training program.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub launcher: Launcher,
    /// GPUs of the whole job.
    pub gpus: Count,
    pub nodes: Option<u64>,
    /// The program: a path such as `examples/run.py`, a module as `openrlhf.cli.train_ppo`, a command as `axolotl`.
    pub program: Word,
    /// What follows it.
    pub arguments: Vec<Word>,
    /// Accelerate's or DeepSpeed's file, where the launcher is given one.
    pub config: Option<Word>,
    /// The launcher's own options that change memory, such as accelerate's `--mixed_precision`, without dashes.
    pub options: Vec<(String, Word)>,
}

/// The launch in a command; `None` where it starts nothing that could train.
pub fn launch(_command: &Command, _script: &Script, _beside: &dyn Beside) -> Option<Launch> {
    None
}
