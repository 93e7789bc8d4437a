//! A language model that reads the features of pictures in the places of their tokens, as most models with a tower and a projector do.

use super::super::Cx;
use super::{Cache, Decoder, pictures};
use crate::tape::Tensor;

/// Runs tower and projector, and returns what their outputs keep, and the features.
pub(super) type See<'a> = &'a dyn Fn(&Cx) -> (Vec<Tensor>, Tensor);

impl Decoder {
    /// Hidden states of the text, and the features of its pictures if it has some.
    pub(super) fn with_features(
        &self,
        cx: &Cx,
        ids: &Tensor,
        padding: Option<&Tensor>,
        cache: &Cache,
        see: Option<See<'_>>,
    ) -> (Tensor, Option<Tensor>) {
        let before = cx.tape.construction_point();
        let mut embeddings = cx.module("language_model", |cx| self.embeddings(cx, ids));
        let after = cx.tape.construction_point();
        let seen = see.map(|see| see(cx));
        cx.tape.construct_here(before, after);
        let features = (seen.as_ref()).map(|(_, features)| features.to(embeddings.dtype()));
        let masks = features.as_ref().map(|features| {
            let masks = pictures::placeholders(ids, false);
            embeddings = embeddings.masked_scatter(&masks[0], features);
            masks
        });
        let hidden = cx.module("language_model", |cx| {
            self.padded(cx, embeddings.clone(), ids, padding, cache)
        });
        drop((seen, masks));
        (hidden, features)
    }
}
