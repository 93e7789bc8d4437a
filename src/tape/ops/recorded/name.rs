//! The name of a recorded call, with what its memory depends on besides its tensors.

/// An operation of ATen as recorded: `convolution:1,1,0,1` is a name and numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    name: &'static str,
    pub(super) numbers: Vec<u64>,
    pub(super) word: bool,
}

/// The names that are told apart in breakdowns and rules; others are told as `recorded`.
const NAMES: &[&str] = &[
    "_embedding_bag",
    "_fused_rms_norm",
    "_fused_rms_norm_backward",
    "_grouped_mm",
    "_log_softmax",
    "_log_softmax_backward_data",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_backward",
    "_softmax",
    "_softmax_backward_data",
    "_thnn_fused_gru_cell",
    "_thnn_fused_gru_cell_backward",
    "_thnn_fused_lstm_cell",
    "_thnn_fused_lstm_cell_backward_impl",
    "_to_copy",
    "abs",
    "add",
    "addcmul",
    "addmm",
    "amax",
    "arange",
    "argmax",
    "as_strided",
    "avg_pool2d",
    "avg_pool2d_backward",
    "baddbmm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bitwise_and",
    "bmm",
    "cat",
    "clamp",
    "clone",
    "constant_pad_nd",
    "convolution",
    "convolution_backward",
    "copy",
    "cos",
    "cumprod",
    "cumsum",
    "detach",
    "div",
    "dot",
    "embedding",
    "embedding_dense_backward",
    "empty",
    "empty_like",
    "eq",
    "erf",
    "exp",
    "expand",
    "fill",
    "flip",
    "full",
    "full_like",
    "gather",
    "ge",
    "gelu",
    "gelu_backward",
    "grid_sampler_2d",
    "gt",
    "hardtanh",
    "index",
    "index_add",
    "index_put",
    "index_select",
    "le",
    "leaky_relu",
    "leaky_relu_backward",
    "linalg_vector_norm",
    "log",
    "logical_and",
    "logical_not",
    "logsumexp",
    "lt",
    "masked_fill",
    "max",
    "max_pool2d_with_indices",
    "max_pool2d_with_indices_backward",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mm",
    "mse_loss",
    "mse_loss_backward",
    "mul",
    "native_batch_norm",
    "native_batch_norm_backward",
    "native_dropout",
    "native_dropout_backward",
    "native_group_norm",
    "native_group_norm_backward",
    "native_layer_norm",
    "native_layer_norm_backward",
    "ne",
    "neg",
    "new_zeros",
    "nll_loss_backward",
    "nll_loss_forward",
    "nonzero",
    "ones",
    "ones_like",
    "permute",
    "pow",
    "prod",
    "rand",
    "randn",
    "reciprocal",
    "relu",
    "repeat",
    "rsqrt",
    "rsub",
    "scatter",
    "scatter_add",
    "select",
    "select_backward",
    "sigmoid",
    "sigmoid_backward",
    "sign",
    "silu",
    "silu_backward",
    "sin",
    "slice",
    "slice_backward",
    "smooth_l1_loss",
    "softplus",
    "softplus_backward",
    "sort",
    "sqrt",
    "squeeze",
    "stack",
    "std",
    "sub",
    "sum",
    "t",
    "tanh",
    "tanh_backward",
    "tensor",
    "threshold_backward",
    "topk",
    "transpose",
    "tril",
    "triu",
    "unsqueeze",
    "upsample_bilinear2d",
    "upsample_bilinear2d_backward",
    "upsample_nearest2d",
    "upsample_nearest2d_backward",
    "var",
    "view",
    "where",
    "zeros",
    "zeros_like",
];

const VIEWS: &[&str] = &[
    "as_strided",
    "detach",
    "empty",
    "empty_like",
    "expand",
    "permute",
    "select",
    "slice",
    "squeeze",
    "t",
    "transpose",
    "unsqueeze",
    "view",
];

impl Call {
    /// Reads a recorded name.
    pub fn new(text: &str) -> Self {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let name = name.strip_suffix('_').unwrap_or(name);
        Self {
            name: NAMES
                .iter()
                .find(|known| **known == name)
                .copied()
                .unwrap_or("recorded"),
            numbers: rest
                .split(',')
                .filter_map(|number| number.parse().ok())
                .collect(),
            word: !rest.is_empty() && !rest.starts_with(|c: char| c.is_ascii_digit()),
        }
    }

    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether it launches no kernel.
    pub(super) fn is_view(&self) -> bool {
        VIEWS.contains(&self.name)
    }

    pub(super) fn number(&self, at: usize) -> u64 {
        self.numbers.get(at).copied().unwrap_or(0)
    }
}
