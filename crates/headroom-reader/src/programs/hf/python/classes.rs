//! Trainers of the Python libraries, and the configurations that they take.

use crate::words::Task;

/// A class of trainers.
pub(super) struct Class {
    pub name: &'static str,
    /// `None`: the model's head decides.
    pub task: Option<Task>,
    pub trl: bool,
}

pub(super) const fn trl(name: &'static str, task: Task) -> Class {
    Class {
        name,
        task: Some(task),
        trl: true,
    }
}

pub(super) const CLASSES: &[Class] = &[
    trl("SFTTrainer", Task::Sft),
    trl("UnslothTrainer", Task::Sft),
    trl("DPOTrainer", Task::Dpo),
    trl("KTOTrainer", Task::Kto),
    trl("ORPOTrainer", Task::Orpo),
    trl("CPOTrainer", Task::Cpo),
    trl("GRPOTrainer", Task::Grpo),
    trl("RLOOTrainer", Task::Rloo),
    trl("PPOTrainer", Task::Ppo),
    trl("PPOv2Trainer", Task::Ppo),
    trl("RewardTrainer", Task::Reward),
    trl("PRMTrainer", Task::TokenClassification),
    trl("GKDTrainer", Task::Distillation),
    trl("OnlineDPOTrainer", Task::Dpo),
    trl("BCOTrainer", Task::Kto),
    Class {
        name: "SentenceTransformerTrainer",
        task: Some(Task::Contrastive),
        trl: false,
    },
    Class {
        name: "CrossEncoderTrainer",
        task: Some(Task::Reranking),
        trl: false,
    },
    Class {
        name: "SetFitTrainer",
        task: Some(Task::Contrastive),
        trl: false,
    },
    Class {
        name: "Seq2SeqTrainer",
        task: Some(Task::Seq2Seq),
        trl: false,
    },
    Class {
        name: "Trainer",
        task: None,
        trl: false,
    },
];

/// Configurations that trainers take.
pub(super) const CONFIGURATIONS: &[&str] = &[
    "TrainingArguments",
    "Seq2SeqTrainingArguments",
    "SentenceTransformerTrainingArguments",
    "CrossEncoderTrainingArguments",
    "SFTConfig",
    "DPOConfig",
    "KTOConfig",
    "ORPOConfig",
    "CPOConfig",
    "GRPOConfig",
    "RLOOConfig",
    "PPOConfig",
    "RewardConfig",
    "PRMConfig",
    "GKDConfig",
    "OnlineDPOConfig",
    "UnslothTrainingArguments",
];
