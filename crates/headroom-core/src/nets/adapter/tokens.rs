//! Trainable tokens (peft/tuners/trainable_tokens/layer.py): some rows of the embedding are learned apart.

use crate::nets::Cx;
use crate::tape::{DType, Tensor};
use headroom_scenario::AdapterMethod;

/// The table with the trained rows copied into it, where the run trains rows: a full copy at each use.
pub(crate) fn with_trained_rows(cx: &Cx, table: Tensor) -> Tensor {
    let lora = cx.env.training.lora.as_ref();
    let Some(lora) = lora.filter(|lora| lora.method == AdapterMethod::TrainedTokens) else {
        return table;
    };
    let dtype = if lora.fp32_adapters {
        DType::F32
    } else {
        table.dtype()
    };
    let shape = [lora.rank, table.size(-1)];
    let rows = cx.param_as("trainable_tokens_delta", shape, dtype, |_| true);
    let rows = rows.tensor().to(table.dtype());
    table.with_rows(&rows)
}
