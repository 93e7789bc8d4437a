//! Recompute the image encoder that is trained beside a language model.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "checkpoint-encoder",
    title: "checkpoint the image encoder",
    group: Group::Encoder,
    what: "Keeps only the input of each block of the encoder and runs the block again during backward.",
    needs: "A model with the dimension checkpoint_encoder, which is 0.",
    cost: Cost::Time,
    never_worse: false,
    speed: "The encoder's forward runs twice.",
    quality: "Identical, but for running statistics of batch norms, which are updated twice.",
    source: "arXiv 1604.06174; models/vision_backbone/tinysam/modeling/tiny_vit_sam.py",
    caveat: "",
    code: "module.use_checkpoint = True",
    apply: |run| {
        (run.model.dim("checkpoint_encoder") == Some(0)).then(|| {
            with(run, |changed| {
                changed.model.dims.insert("checkpoint_encoder".into(), 1);
            })
        })
    },
};
