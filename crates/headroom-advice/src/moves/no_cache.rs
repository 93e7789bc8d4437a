//! Turn off the key-value cache.

use super::{Cost, Group, Move, Results, with};

pub const MOVE: Move = Move {
    id: "no-cache",
    title: "turn off the key-value cache",
    group: Group::Cache,
    what: "Does not keep the keys and values that only generation needs.",
    needs: "The model fills a cache during training.",
    cost: Cost::Free,
    results: Results::Identical,
    never_worse: true,
    speed: "No change.",
    quality: "Identical.",
    source: "transformers modeling_llama.py: use_cache defaults to the model's configuration, where it is on",
    caveat: "",
    code: "model.config.use_cache = False",
    apply: |run| {
        run.training
            .use_cache
            .then(|| with(run, |changed| changed.training.use_cache = false))
    },
};
