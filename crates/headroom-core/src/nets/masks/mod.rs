//! Attention masks besides the causal one of `inputs` (transformers' masking_utils.py): those of encoders, and those in which
//! the tokens of an image attend to each other.

mod bidirectional;
mod blockwise;

pub(crate) use bidirectional::{bidirectional_mask, sliding_window_mask};
pub(crate) use blockwise::{blockwise_mask, image_blocks, prefix_blocks};
