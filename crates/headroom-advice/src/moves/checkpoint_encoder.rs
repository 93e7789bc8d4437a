//! Checkpointing of the image encoder that is trained with a language model.

use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "checkpoint-encoder",
    title: "checkpoint the image encoder",
    group: Group::Encoder,
    what: "Saves only the input of each encoder block and recomputes the block during backward.",
    needs: "A model whose dimension `checkpoint_encoder` is 0.",
    cost: Cost::Time,
    results: Results::Identical,
    never_worse: false,
    speed: "The encoder's forward pass runs twice.",
    quality: "Identical except for batch-norm running statistics, which are updated twice.",
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
