//! Turn the key-value cache off.

use super::{Cost, Group, Move, with};

pub const MOVE: Move = Move {
    id: "no-cache",
    title: "turn the key-value cache off",
    group: Group::Cache,
    what: "Training has no use for the keys and values that generation keeps.",
    needs: "The model fills a cache while it trains.",
    cost: Cost::Free,
    never_worse: true,
    speed: "None.",
    quality: "None.",
    source: "transformers modeling_llama.py: use_cache defaults to the configuration, which is on",
    caveat: "",
    code: "model.config.use_cache = False",
    apply: |s| {
        s.training
            .use_cache
            .then(|| with(s, |it| it.training.use_cache = false))
    },
};
