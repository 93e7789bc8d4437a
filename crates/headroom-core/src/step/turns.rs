//! The order in which the micro-batches of a step pass through the model.

/// One pass of a micro-batch, by its place in the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MicroBatchPass {
    Forward(usize),
    Backward(usize),
}

/// The turns of a step on one GPU: each micro-batch forward and at once backward. Accumulated gradients are the case of more
/// than one.
pub(crate) fn one_by_one(micro_batches: usize) -> impl Iterator<Item = MicroBatchPass> {
    (0..micro_batches).flat_map(|place| {
        [
            MicroBatchPass::Forward(place),
            MicroBatchPass::Backward(place),
        ]
    })
}
