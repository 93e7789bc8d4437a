//! Scenarios made up for property tests: valid, varied, the same ones in each run.

use headroom_testing::{Dice, HOSTILE};

use super::Scenario;
use super::settings::{self, ValueType};

/// A scenario of acceptable values in which about half of the settings differ from their defaults.
/// # Panics
/// If a setting refuses a value of its own type.
#[allow(clippy::unwrap_used, reason = "helpers of tests are tests")]
pub fn scenario(dice: &mut Dice) -> Scenario {
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
