//! The moving average (EMA) on the host.

use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "ema-on-host",
    title: "keep the moving average on the host",
    group: Group::Average,
    what: "Keeps the averaged weights in host memory and updates them there.",
    needs: "A moving average of the weights on the GPU.",
    cost: Cost::Time,
    results: Results::Identical,
    never_worse: false,
    speed: "Each update copies the weights over PCIe; updating every tenth step hides the cost.",
    quality: "Identical at the same update interval.",
    source: "timm utils/model_ema.py (device=\"cpu\")",
    caveat: "To evaluate the average, it must be copied back to the GPU.",
    code: "timm.utils.ModelEmaV3(model, device=\"cpu\")",
    apply: |run| {
        let on_card = run.training.ema && !run.training.ema_on_host;
        on_card.then(|| with(run, |changed| changed.training.ema_on_host = true))
    },
};
