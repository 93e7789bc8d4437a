//! Keep the moving average on the host.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "ema-on-host",
    title: "keep the moving average on the host",
    group: Group::Average,
    what: "Keeps the averaged weights in host memory and updates them there.",
    needs: "A moving average of the weights on the GPU.",
    cost: Cost::Time,
    never_worse: false,
    speed: "One copy of the weights over the link at each update; update every tenth step to hide it.",
    quality: "Identical if it is updated as often.",
    source: "timm utils/model_ema.py (device=\"cpu\")",
    caveat: "Evaluating the average needs it back on the GPU.",
    code: "timm.utils.ModelEmaV3(model, device=\"cpu\")",
    apply: |run| {
        let on_card = run.training.ema && !run.training.ema_on_host;
        on_card.then(|| with(run, |changed| changed.training.ema_on_host = true))
    },
};
