//! What trainers after pre-training do around a language model: other models' passes, losses of their own, sampling.
//!
//! A task is a network around the network, a file for each: its forward function reads like the trainer's `compute_loss`, and
//! auxiliary models are modules of it.

mod classification;
mod contrastive;
mod distillation;
mod evaluation;
mod grpo;
mod head;
mod log_softmax;
mod orpo;
mod pictures;
mod policy;
mod ppo;
mod preference;
mod reference;
mod reward;
mod rows;
mod sampling;
mod sft;
mod states;

use crate::nets::{self, Net, Sizes};
use headroom_catalog as catalog;
use headroom_scenario::{Data, LmHead, Objective, Task, Training};
use policy::Policy;

/// The task of a run around its network; none where the network's own loss is trained on, or where the network is no language
/// model: checks refuse such a task.
pub(crate) fn around<'a>(
    net: &'a dyn Net,
    data: &'a Data,
    training: &'a Training,
) -> Option<Box<dyn Net + 'a>> {
    let task = &training.task;
    // Before its fused head, TRL's supervised fine-tuning took the model's own loss.
    let own = task.objective == Objective::Sft && task.head == LmHead::Logits;
    if task.objective == Objective::Pretraining || own {
        return None;
    }
    if task.objective.trains_head() {
        let states = states::States::of(net)?;
        return Some(match task.objective {
            Objective::Contrastive => Box::new(contrastive::Contrastive { states, task, data }),
            _ => Box::new(classification::Classification { states, task }),
        });
    }
    let model = net.language_model()?;
    let policy = Policy { model, task, data };
    let around: Box<dyn Net + 'a> = match task.objective {
        Objective::Dpo | Objective::Kto | Objective::Orpo | Objective::SimPo
            if task.head == LmHead::LogSoftmax =>
        {
            Box::new(log_softmax::LogSoftmax { policy })
        }
        Objective::Pretraining
        | Objective::Contrastive
        | Objective::Classification
        | Objective::TokenClassification
        | Objective::Regression
        | Objective::Reranking
        | Objective::QuestionAnswering => return None,
        Objective::Sft => Box::new(sft::Sft { policy }),
        Objective::Dpo | Objective::Kto => Box::new(preference::Preference { policy }),
        Objective::Orpo | Objective::Cpo | Objective::SimPo => Box::new(orpo::Orpo { policy }),
        Objective::Reward => Box::new(reward::Reward { policy }),
        Objective::Grpo | Objective::Rloo => Box::new(grpo::Grpo::new(policy, training)),
        Objective::Ppo => Box::new(ppo::Ppo { policy }),
        Objective::Gkd | Objective::Distillation => Box::new(distillation::Distillation {
            policy,
            teacher: teacher(task),
        }),
        Objective::Generation => Box::new(sampling::Generation { policy }),
        Objective::Evaluation => Box::new(evaluation::Evaluation { policy, net }),
    };
    if !model.reads_pictures() {
        return Some(around);
    }
    let task = around;
    Some(Box::new(pictures::WithPictures { task, model, data }))
}

/// The network of the teacher, where the catalogue has one by that name.
fn teacher(task: &Task) -> Option<Box<dyn Net>> {
    let entry = catalog::model(&task.teacher)?;
    nets::build(entry.arch, &Sizes::from_entry(entry)).ok()
}
