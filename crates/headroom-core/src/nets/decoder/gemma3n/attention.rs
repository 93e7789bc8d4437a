//! `Gemma3nTextAttention.forward`.

use std::cell::RefCell;
use std::rc::Rc;

use super::super::super::Cx;
use super::super::super::kv_cache::cached;
use super::super::{attention, norm, rope};
use super::{Gemma3n, LayerInputs};
use crate::tape::Tensor;

/// The keys and values that layers with windows and those with full attention have stored for later ones.
pub(super) type Stored = Rc<RefCell<[Option<[Tensor; 2]>; 2]>>;

impl Gemma3n {
    pub(super) fn attention(
        &self,
        cx: &Cx,
        x: &Tensor,
        inputs: &LayerInputs,
    ) -> (Tensor, Option<Tensor>) {
        let text = &self.text;
        let (b, s, dim, kv) = (x.size(0), x.size(1), text.head_dim, text.key_value_heads);
        let heads = |t: Tensor, n: u64| t.view(&[b, s, n, dim]);
        let tables = inputs.rotary.each_ref().map(|table| table.unsqueeze(2));
        let turned = |t: &Tensor| rope::rotated(t, &tables, rope::rotate_half);
        let mut query = heads(cx.linear("q_proj", x, text.heads * dim, false), text.heads);
        query = text.norm(cx, "q_norm", &query);
        query = turned(&query);
        query = query.transpose(1, 2);
        let kind = usize::from(inputs.full);
        let reused = inputs
            .reuses
            .then(|| inputs.stored.borrow()[kind].clone())
            .flatten();
        let [key, value] = reused.unwrap_or_else(|| {
            let mut key = heads(cx.linear("k_proj", x, kv * dim, false), kv);
            key = text.norm(cx, "k_norm", &key);
            key = turned(&key);
            key = key.transpose(1, 2);
            let mut value = heads(cx.linear("v_proj", x, kv * dim, false), kv);
            value = norm::gemma4(&value, None);
            value = value.transpose(1, 2);
            (key, value) = cached(&inputs.cache, key, value);
            [key, value]
        });
        if inputs.stores {
            inputs.stored.borrow_mut()[kind] = Some([key.clone(), value.clone()]);
        }
        let all = [&query, &key, &value];
        let groups = text.heads / kv;
        let (mut out, weights) =
            attention::attention_function(cx, all, &inputs.mask, groups, false, 0.0);
        out = out.reshape(&[b, s, text.heads * dim]).contiguous();
        out = cx.linear("o_proj", &out, text.hidden, false);
        drop((query, key, value));
        (out, weights)
    }
}
