//! Freeze the embeddings.

use super::embeddings;
use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "freeze-embeddings",
    title: "freeze the embeddings",
    group: Group::Frozen,
    what: "Embeddings have no gradients and no states; with tied weights the head is frozen too.",
    needs: "A language model that is trained as a whole.",
    cost: Cost::Results,
    never_worse: true,
    speed: "A little faster.",
    quality: "New tokens cannot be learnt; fine-tuning rarely needs them to move.",
    source: "arXiv 1911.03090 (what would ELSA do: freezing layers); torch.nn.Module.requires_grad_",
    caveat: "",
    code: "model.get_input_embeddings().requires_grad_(False)",
    apply: |s| {
        let names = embeddings(s)?;
        let whole = s.training.lora.is_none()
            && s.training.train_only.is_empty()
            && !names.iter().any(|name| s.training.freeze.contains(name));
        whole.then(|| with(s, |it| it.training.freeze.extend(names)))
    },
};
