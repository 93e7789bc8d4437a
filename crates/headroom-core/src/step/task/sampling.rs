//! `generate` of transformers (generation/utils.py, `_sample`): a pass over the prompt, then one for each token.

use super::Policy;
use super::reference;
use super::rows::Rows;
use crate::nets::{Cx, KvCache, LanguageModel, Net, Output};
use crate::tape::{Category, DType, Phase, Tensor};
use headroom_scenario::{Data, Sampler};

/// Samples for this many rows at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub rows: u64,
    pub prompt: u64,
    pub completion: u64,
    pub sampler: Sampler,
    pub keeps_scores: bool,
    /// Each pass runs under an autocast of its own, and gives its logits in fp32, as a model prepared by accelerate does.
    pub prepared: bool,
}

/// Passes over single tokens that are run: the first ones, some between, and the last two, which show the cache at its longest.
const STOPS: u64 = 4;

/// Samples completions; the ids `[rows, prompt + completion]`, and the scores where they are kept.
pub(crate) fn sample(cx: &Cx, model: &dyn LanguageModel, what: Sample) -> (Tensor, Vec<Tensor>) {
    reference::without_gradients(cx, |cx| {
        cx.tape.with_phase(Phase::Generation, || {
            if what.prepared {
                cx.tape.without_autocast(|| passes(cx, model, what))
            } else {
                cx.autocast(|| passes(cx, model, what))
            }
        })
    })
}

fn passes(cx: &Cx, model: &dyn LanguageModel, what: Sample) -> (Tensor, Vec<Tensor>) {
    let tape = &cx.tape;
    let ids = |length: u64| tape.empty("input_ids", [what.rows, length], DType::I64);
    let length = what.prompt.saturating_add(what.completion);
    let cache = match what.sampler {
        Sampler::Static => KvCache::with_room(length),
        _ => KvCache::default(),
    };
    let scores = |tokens: u64| {
        let shape = [what.rows, tokens, model.vocabulary()];
        tape.empty("scores", shape, DType::F32)
    };
    let prompt = ids(what.prompt);
    let mut names = next_token(cx, model, what, Rows::full(&prompt), &cache);
    drop(prompt);
    // The scores that are returned are the very tensors that the next token was chosen from.
    let mut kept = Vec::new();
    if what.keeps_scores {
        kept.push(names[0].clone());
    }
    cache.next_pass();
    // The pass over the prompt yields one token; the last token sampled is not passed.
    let passes = what.completion.saturating_sub(1);
    let mut passed = 0;
    while passed < passes {
        let left = passes - passed;
        // The last two passes are run as they are, and so is the first. The cache is longest in the last one, and full before it.
        let skipped = if cx.env.peak_only {
            left.saturating_sub(2)
        } else if passed == 0 || left <= 2 {
            0
        } else {
            (left - 2).div_ceil(STOPS).min(left - 3)
        };
        cache.skip(skipped);
        passed += skipped + 1;
        if what.keeps_scores && skipped > 0 {
            kept.push(scores(skipped));
        }
        let token = ids(1);
        let next = next_token(cx, model, what, Rows::full(&token), &cache);
        if what.keeps_scores {
            kept.push(next[0].clone());
        }
        drop(std::mem::replace(&mut names, next));
        cache.next_pass();
    }
    drop(names);
    for tensor in cache.take() {
        drop(tensor);
    }
    (ids(length), kept)
}

/// A pass and the next token of each row: the logits of the last position in fp32, and their probabilities. Both names live on
/// until the next pass is over.
fn next_token(
    cx: &Cx,
    model: &dyn LanguageModel,
    what: Sample,
    rows: Rows,
    cache: &KvCache,
) -> [Tensor; 2] {
    let forward = || {
        let hidden = model.hidden(cx, rows.ids, rows.mask, Some(cache));
        let last = hidden.narrow(1, 1);
        drop(hidden);
        model.logits(cx, &last)
    };
    let logits = if what.prepared {
        cx.autocast(forward).pipe(|logits| logits.to(DType::F32))
    } else {
        forward()
    };
    let shape = [what.rows, model.vocabulary()];
    let next_token_logits = logits.constant("to", &shape, DType::F32);
    drop(logits);
    let probabilities = next_token_logits.constant("softmax", &shape, DType::F32);
    [next_token_logits, probabilities]
}

impl Policy<'_> {
    /// The completions of one round, for this many micro-batches.
    pub(crate) fn sampled(&self, micro_batch: u64, batches: u64) -> Sample {
        Sample {
            rows: micro_batch.saturating_mul(batches),
            prompt: self.task.prompt,
            completion: self.task.completion,
            sampler: self.task.sampler,
            keeps_scores: false,
            prepared: true,
        }
    }

    /// Whether the model itself samples, on this card.
    pub(crate) fn samples_itself(&self) -> bool {
        matches!(self.task.sampler, Sampler::Generate | Sampler::Static)
    }

    /// The tokens of a row that was sampled.
    pub(crate) fn sampled_length(&self) -> u64 {
        self.task.prompt.saturating_add(self.task.completion)
    }
}

/// Sampling for its own sake: nothing is trained.
pub(crate) struct Generation<'a> {
    pub policy: Policy<'a>,
}

impl Net for Generation<'_> {
    fn batch(&self, cx: &Cx, data: &Data) -> Vec<Tensor> {
        vec![
            cx.tape
                .empty("input_ids", [data.micro_batch, 1], DType::I64),
        ]
    }

    /// Shows the declaration pass what the model has.
    fn forward(&self, cx: &Cx, batch: &[Tensor]) -> Output {
        let Some(ids) = batch.first() else {
            return Output::empty(cx);
        };
        let model = self.policy.model;
        let rows = Rows::full(ids);
        let hidden = model.hidden(cx, rows.ids, rows.mask, None);
        let logits = model.logits(cx, &hidden);
        Output {
            loss: logits.mean_all(),
            held: Vec::new(),
        }
    }

    fn before_step(&self, cx: &Cx, data: &Data) {
        let what = Sample {
            keeps_scores: self.policy.task.keeps_scores,
            prepared: false,
            ..self.policy.sampled(data.micro_batch, 1)
        };
        let (ids, scores) = sample(cx, self.policy.model, what);
        ids.set_category(Category::Inputs);
        drop((ids, scores));
    }
}
