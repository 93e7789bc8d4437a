//! Freezing the image or spectrum encoder.

use super::{Cost, Group, Move, Results, encoder, is_frozen, with};

pub const MOVE: Move = Move {
    id: "freeze-encoder",
    title: "freeze the encoder",
    group: Group::Encoder,
    what: "The image tower or spectrum backbone gets no gradients and no optimizer states; if nothing before it is trained, its activations are freed immediately.",
    needs: "A model with an encoder and a head that reads it, such as LLaVA or a fine-tuned DreaMS.",
    cost: Cost::Results,
    results: Results::Changes,
    never_worse: true,
    speed: "Faster: no backward pass through the encoder.",
    quality: "Features stay as pre-trained; LLaVA's first stages freeze the tower, too.",
    source: "arXiv 2304.08485 section 4.2; DreaMS --unfreeze_backbone_at_epoch",
    caveat: "Set norms and dropout of the frozen part to eval mode.",
    code: "model.vision_tower.requires_grad_(False)",
    apply: |run| {
        let part = encoder(run)?;
        let training = &run.training;
        let open = !is_frozen(run, part) && training.train_only.is_empty();
        open.then(|| {
            with(run, |changed| match &mut changed.training.lora {
                Some(lora) => lora.exclude.push(part.into()),
                None => changed.training.freeze.push(part.into()),
            })
        })
    },
};
