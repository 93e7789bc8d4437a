//! The first of two stages: each place is scored for each word, and the best are where queries start.

use super::GroundingDino;
use crate::nets::Cx;
use crate::nets::detection::deformable::Maps;
use crate::nets::detection::prediction_head;
use crate::tape::{DType, Tensor};

/// Where queries start.
pub(super) struct First {
    pub(super) target: Tensor,
    pub(super) references: Tensor,
    /// Scores of the queries before any layer.
    pub(super) scores: Tensor,
    pub(super) held: Vec<Tensor>,
}

impl GroundingDino {
    pub(super) fn first_stage(&self, cx: &Cx, maps: &Maps, [words, seen]: [&Tensor; 2]) -> First {
        let x = &maps.features;
        let [n, total] = [x.size(0), x.size(1)];
        let proposals = x.constant("masked_fill", &[n, total, 4], x.dtype());
        let outside = x.constant("logical_not", &[n, total, 1], DType::Bool);
        let object = {
            let kept = x
                .masked_fill(&outside)
                .pipe(|kept| kept.masked_fill(&outside));
            let x = cx.linear("enc_output", &kept, self.hidden, true);
            cx.layer_norm("enc_output_norm", &x)
        };
        let scores = self.scores(&object, words, seen);
        let coordinates = {
            let moved = prediction_head(cx, "encoder_output_bbox_embed", &object, 4);
            moved.add(&proposals)
        };
        let best = {
            let highest = scores.max_values();
            highest.constant("topk", &[n, self.queries], DType::I64)
        };
        let references = {
            let index = best.constant("repeat", &[n, self.queries, 4], DType::I64);
            coordinates.gathered(&index).detach().sigmoid()
        };
        let table = cx.module("query_position_embeddings", |cx| {
            cx.param("weight", [self.queries, self.hidden]).tensor()
        });
        let target = table.unsqueeze(0).tiled(n);
        let first = self.scores(&target, words, seen);
        First {
            target,
            references,
            scores: first,
            held: vec![scores, coordinates, object],
        }
    }
}
