//! Scenarios made up for property tests: valid, varied, the same ones in each run.

use super::Scenario;
use super::settings::{self, ValueType};

/// A small deterministic generator (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.roll() % end.max(1)
    }
    pub(crate) fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len() as u64) as usize]
    }
}

/// Names that quoting, encoding and YAML must survive.
pub(crate) const HOSTILE: &[&str] = &[
    "q_proj",
    "it's",
    "$(touch${IFS}canary)",
    "`touch`",
    "a;b|c&d",
    "#v=1&gpu=x",
    "50%",
    "\"quoted\"",
    "no",
    "null",
    "1e3",
    "0x10",
    "- dash",
    "key: value",
    "größe-模型-🦀",
    "\\back\\slash",
    "!tag",
    "*anchor",
    "~",
    "{a}",
    "[b]",
    "'",
    "--help",
];

/// A scenario of acceptable values in which about half of the settings differ from their defaults.
pub(crate) fn scenario(dice: &mut Dice) -> Scenario {
    let mut scenario = Scenario::default();
    for setting in settings::all() {
        if dice.below(2) == 0 || !setting.applies(&scenario) {
            continue;
        }
        let text = match setting.value_type {
            ValueType::Whole { low, high } => {
                let spread = [high - low, 1000.min(high - low), 8.min(high - low)];
                let span = spread[dice.below(3) as usize];
                (low + dice.below(span + 1)).to_string()
            }
            ValueType::Number { low, high } => {
                (low + (high - low) * (dice.below(1001) as f64 / 1000.0)).to_string()
            }
            ValueType::Switch => dice.one_of(&["on", "off"]).into(),
            ValueType::Choice(choices) => {
                choices[dice.below(choices.len() as u64) as usize].id.into()
            }
            ValueType::Gpu | ValueType::Model => dice.one_of(HOSTILE).into(),
            ValueType::Version { low, high } => {
                let first = if low.0 == high.0 { low.1 } else { 0 };
                let minor = u64::from(first) + dice.below(u64::from(high.1 - first) + 1);
                format!("{}.{minor}", high.0)
            }
            ValueType::Words => {
                let words = (0..dice.below(4)).map(|_| dice.one_of(HOSTILE).replace(' ', "_"));
                words.collect::<Vec<_>>().join(",")
            }
            ValueType::Network => dice.one_of(super::network::SAMPLES).into(),
            ValueType::Sizes => {
                let names = ["layers", "hidden", "vocab"];
                let pairs = names[..dice.below(4) as usize]
                    .iter()
                    .map(|name| format!("{name}={}", dice.below(100_000)));
                pairs.collect::<Vec<_>>().join(",")
            }
        };
        setting.set(&mut scenario, &text).unwrap();
    }
    scenario
}
