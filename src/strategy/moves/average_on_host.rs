//! Keep the moving average on the host.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "ema-on-host",
    title: "keep the moving average on the host",
    group: Group::Average,
    what: "The averaged weights live in host memory and are updated there.",
    needs: "A moving average of the weights on the card.",
    cost: Cost::Time,
    never_worse: false,
    speed: "One copy of the weights over the link with each update; update every tenth step to hide it.",
    quality: "Equal where it is updated as often.",
    source: "timm utils/model_ema.py (device=\"cpu\")",
    caveat: "Evaluating the average needs it back on the card.",
    code: "timm.utils.ModelEmaV3(model, device=\"cpu\")",
    apply: |s| {
        let on_card = s.training.ema && !s.training.ema_on_host;
        on_card.then(|| with(s, |it| it.training.ema_on_host = true))
    },
};
