//! Freeze the encoder of images or spectra.

use super::{Cost, Group, Move, encoder, is_frozen, with};

pub const MOVE: Move = Move {
    id: "freeze-encoder",
    title: "freeze the encoder",
    group: Group::Encoder,
    what: "The image tower or the spectra's backbone has no gradients and no states, and where nothing before it is trained, its activations are let go at once.",
    needs: "A model of an encoder and what reads it, such as LLaVA or a fine-tuned DreaMS.",
    cost: Cost::Results,
    never_worse: true,
    speed: "Faster: no backward pass through the encoder.",
    quality: "Features stay as they were pre-trained; in LLaVA's first stages the tower is frozen too.",
    source: "arXiv 2304.08485 section 4.2; DreaMS --unfreeze_backbone_at_epoch",
    caveat: "Norms and dropout of the frozen part should be in evaluation mode.",
    code: "model.vision_tower.requires_grad_(False)",
    apply: |s| {
        let part = encoder(s)?;
        let training = &s.training;
        let open = !is_frozen(s, part) && training.train_only.is_empty();
        open.then(|| {
            with(s, |it| match &mut it.training.lora {
                Some(lora) => lora.exclude.push(part.into()),
                None => it.training.freeze.push(part.into()),
            })
        })
    },
};
