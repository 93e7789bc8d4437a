//! Headings of groups in lists.

use headroom_scenario::Objective;

pub const COMMON_GPUS: &str = "Most used";
pub const CONSUMER: &str = "Consumer";
pub const DATACENTER: &str = "Data centre";
pub const WORKSTATION: &str = "Workstation";
pub const LAPTOP: &str = "Laptop";
pub const UNIFIED: &str = "Shared with the processor";

pub const LANGUAGE: &str = "Language models";
pub const VISION_LANGUAGE: &str = "Vision-language";
pub const IMAGES: &str = "Images";
pub const SPEECH: &str = "Speech";
pub const REINFORCEMENT: &str = "Preferences and RL";
pub const ENCODERS: &str = "Text encoders";
pub const SCIENCE: &str = "Proteins, graphs, series";
pub const RESEARCH: &str = "Research systems";

pub const OWN_LOOP: &str = "Your own loop";
pub const TUNING: &str = "Fine-tuning";
pub const PRETRAINING: &str = "Pre-training";
pub const DIFFUSION: &str = "Images and videos";
pub const STARTERS: &str = "Clusters and clouds";

pub const USUAL: &str = "Usual";
pub const OTHERS: &str = "Others";

/// The heading of presets whose task is more than a model's own loss.
pub const fn objective_group(objective: Objective) -> Option<&'static str> {
    match objective {
        Objective::Dpo
        | Objective::Kto
        | Objective::Orpo
        | Objective::Cpo
        | Objective::SimPo
        | Objective::Reward
        | Objective::Grpo
        | Objective::Rloo
        | Objective::Ppo => Some(REINFORCEMENT),
        _ => None,
    }
}
