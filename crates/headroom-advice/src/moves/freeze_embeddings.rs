//! Freeze the embeddings.

use super::embeddings;
use super::{Cost, Group, Move, Results, own_loss, with};

pub const MOVE: Move = Move {
    id: "freeze-embeddings",
    title: "freeze the embeddings",
    group: Group::Frozen,
    what: "Embeddings get no gradients and no optimizer states; with tied weights the output projection is frozen too.",
    needs: "Full training of a language model on its own loss.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Slightly faster.",
    quality: "New tokens cannot be learned; fine-tuning rarely needs trained embeddings.",
    source: "arXiv 1911.03090 (what would ELSA do: freezing layers); torch.nn.Module.requires_grad_",
    caveat: "",
    code: "model.get_input_embeddings().requires_grad_(False)",
    apply: |run| {
        let names = embeddings(run)?;
        let whole = own_loss(run)
            && run.training.lora.is_none()
            && run.training.train_only.is_empty()
            && !names.iter().any(|name| run.training.freeze.contains(name));
        whole.then(|| with(run, |changed| changed.training.freeze.extend(names)))
    },
};
