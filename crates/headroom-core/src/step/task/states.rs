//! Hidden states of a model without its head: of a causal language model or of an encoder.

use crate::nets::{Cx, LanguageModel, Net, TextEncoder, TokenMask};
use crate::tape::Tensor;

/// The model that gives hidden states.
#[derive(Clone, Copy)]
pub(super) enum States<'a> {
    Decoder(&'a dyn LanguageModel),
    Encoder(&'a dyn TextEncoder),
}

impl<'a> States<'a> {
    /// `None` for a network that is neither.
    pub(super) fn of(net: &'a dyn Net) -> Option<Self> {
        let decoder = net.language_model().map(Self::Decoder);
        decoder.or_else(|| net.text_encoder().map(Self::Encoder))
    }

    /// Makes what the class without a head has and nothing reads.
    pub(super) fn unread(&self, cx: &Cx) {
        if let Self::Encoder(model) = self {
            model.unread(cx);
        }
    }

    /// `last_hidden_state` `[B, S, H]`.
    pub(super) fn last(&self, cx: &Cx, ids: &Tensor, padding: Option<&Tensor>) -> Tensor {
        match self {
            Self::Decoder(model) => {
                let mask = padding.map_or(TokenMask::Full, TokenMask::Padded);
                model.hidden(cx, ids, mask, None)
            }
            Self::Encoder(model) => model.encode(cx, ids, padding),
        }
    }
}
