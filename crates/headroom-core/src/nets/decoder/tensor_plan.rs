//! How tensor parallelism splits a decoder: `base_model_tp_plan` of transformers' configurations.

use super::family::{Family, MlpForm, Positions, Projection, QkNorm, SharedExpert};
use crate::nets::{Plan, Split};

/// The plans of all families in one, for no two give a name another meaning. Embedding and head stay whole.
const BASE_MODEL_TP_PLAN: Plan = &[
    ("q_proj", Split::Columns),
    ("k_proj", Split::Columns),
    ("v_proj", Split::Columns),
    ("o_proj", Split::Rows),
    ("dense", Split::Rows),
    ("gate_proj", Split::Columns),
    ("up_proj", Split::Columns),
    ("down_proj", Split::Rows),
    ("fc1", Split::Columns),
    ("fc2", Split::Rows),
    ("c_fc", Split::Columns),
    ("c_proj", Split::Rows),
];

/// The same with experts that are divided (`_resolve_parallel_plans` of transformers 5): what is an expert's is left out, and the
/// embedding and the head are split by the vocabulary.
const BESIDE_EXPERTS: Plan = &[
    ("q_proj", Split::Columns),
    ("k_proj", Split::Columns),
    ("v_proj", Split::Columns),
    ("o_proj", Split::Rows),
    ("embed_tokens", Split::Vocabulary),
    ("lm_head", Split::Head),
];

impl Family {
    /// The plan, where the library has one that splits matrices alone: fused projections are gathered whole again, and experts
    /// are split otherwise, unless each GPU has some of them.
    pub(super) fn tensor_plan(&self, divides_experts: bool) -> Option<Plan> {
        let attention = &self.attention;
        let separate = matches!(
            attention.projection,
            Projection::Separate | Projection::SeparateThenSplit
        );
        let heads_alone = matches!(
            attention.qk_norm,
            QkNorm::None | QkNorm::PerHead | QkNorm::PerHeadTransposed | QkNorm::PerHeadAfterRope
        );
        let rotary = matches!(self.embeddings.positions, Positions::Rotary(_));
        let plan = match self.mlp.experts {
            None => Some(BASE_MODEL_TP_PLAN),
            Some(experts) if divides_experts && !experts.bias => {
                let alone = experts.shared == SharedExpert::None;
                alone.then_some(BESIDE_EXPERTS)
            }
            Some(_) => None,
        };
        let planned = separate && heads_alone && rotary && self.mlp.form != MlpForm::FusedGated;
        plan.filter(|_| planned)
    }
}
