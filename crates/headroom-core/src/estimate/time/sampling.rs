//! How long vLLM samples beside a step: the prompts' products, then a pass for each token, which reads the weights and what is cached
//! of the rows under way.

use super::Span;
use super::pace::over;
use crate::estimate::vllm;
use crate::step::VllmShare;
use headroom_base::units::Seconds;
use headroom_catalog::Speeds;
use headroom_scenario::Case;

/// The part of a round of sampling that belongs to one optimizer step; `None` where vLLM does not sample on these GPUs or the model's
/// sizes are not known.
pub(super) fn sampling(case: &Case, speeds: &Speeds) -> Option<Span> {
    let round = Round::of(case)?;
    let speed = |at: usize| {
        let prompts = over(round.prompt_flops(), speeds.products_half)[at];
        let pass = over(round.pass_flops(), speeds.products_half)[at]
            .max(over(round.pass_bytes(), speeds.bandwidth)[at]);
        Seconds::new((prompts + round.passes() * pass) * round.share_of_a_step)
    };
    Some(Span {
        low: speed(0),
        expected: speed(1),
        high: speed(2),
    })
}

/// A round of sampling on the GPUs of one vLLM, as one of them sees it.
struct Round {
    /// Completions of the round.
    rows: f64,
    generations: f64,
    prompt: f64,
    completion: f64,
    /// Parameters that one token runs through, and bytes of the weights, on this GPU.
    active: f64,
    weights: f64,
    /// Bytes of keys and values of a token on this GPU.
    token: f64,
    cache: f64,
    share_of_a_step: f64,
}

impl Round {
    fn of(case: &Case) -> Option<Self> {
        let VllmShare { weights, cache } = vllm::share(case);
        let model = case.listed_model().filter(|_| weights > 0 && cache > 0)?;
        let training = &case.scenario.training;
        let task = &training.task;
        let ways = task.vllm_tp.max(1) as f64;
        let size = |name: &str| case.scenario.model.dim(name);
        let heads = size("heads")?;
        let kv = size("kv").unwrap_or(heads);
        let head = size("head_dim").or_else(|| Some(size("hidden")? / heads.max(1)))?;
        // Keys and values in 16 bits.
        let token = 4.0 * size("layers")? as f64 * kv as f64 * head as f64;
        let batches = match task.generation_batches {
            0 => training.accumulation,
            batches => batches,
        };
        let rows = case.scenario.data.micro_batch as f64 * batches as f64;
        let steps = batches as f64 / training.accumulation.max(1) as f64;
        let parameters = match model.active {
            0 => model.parameters,
            active => active,
        };
        Some(Self {
            rows: rows * ways,
            generations: task.generations.max(1) as f64,
            prompt: task.prompt as f64,
            completion: task.completion as f64,
            active: parameters as f64 / ways,
            weights: weights as f64,
            token: token / ways,
            cache: cache as f64,
            share_of_a_step: 1.0 / (steps.max(f64::MIN_POSITIVE) * task.iterations.max(1) as f64),
        })
    }

    /// Rows that the cache holds at full length, at most those of the round.
    fn together(&self) -> f64 {
        let length = (self.prompt + self.completion).max(1.0);
        (self.cache / (self.token * length).max(1.0))
            .floor()
            .clamp(1.0, self.rows.max(1.0))
    }

    /// Passes over one token of each row under way: a row that ends makes room for another.
    fn passes(&self) -> f64 {
        self.completion * (self.rows / self.together()).max(1.0)
    }

    /// A prompt's keys and values are shared by all its completions (`enable_prefix_caching`, on by default).
    fn prompt_flops(&self) -> f64 {
        2.0 * self.active * self.prompt * (self.rows / self.generations).max(1.0)
    }

    fn pass_flops(&self) -> f64 {
        2.0 * self.active * self.together()
    }

    /// The weights, and half of the completions' keys and values on average.
    fn pass_bytes(&self) -> f64 {
        let length = self.prompt + self.completion / 2.0;
        self.weights + self.together() * self.token * length
    }
}
