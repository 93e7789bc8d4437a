//! What the longest predictions cost: `cargo run --profile fast --example extremes -- COUNT [SEED]` makes up scenarios at the edges of
//! what settings admit and says of each that takes long where its time goes.
//! Links on standard input are measured in place of these, with COUNT 0.

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::sync::LazyLock;
use std::time::Instant;

use headroom_catalog as catalog;
use headroom_core::estimate::{Prediction, quick_peak};
use headroom_scenario::settings::{self, ValueType};
use headroom_scenario::share;
use headroom_scenario::{Scenario, presets};

struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end.max(1) as u64) as usize
    }
}

/// Milliseconds of the processor that this program has had, where Linux counts them; else of the clock.
fn elapsed() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let counted = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let nanoseconds = counted.split(' ').next().map(str::parse::<f64>);
    match nanoseconds {
        Some(Ok(nanoseconds)) => nanoseconds / 1e6,
        _ => START.elapsed().as_secs_f64() * 1e3,
    }
}

fn extreme(dice: &mut Dice) -> Scenario {
    let mut scenario = if dice.below(3) == 0 {
        presets::all()[dice.below(presets::all().len())].scenario()
    } else {
        let models = catalog::models();
        Scenario::of_model(&models[dice.below(models.len())])
    };
    if let Some(entry) = catalog::model(&scenario.model.id) {
        let names = entry.sizes();
        for _ in 0..dice.below(3) {
            let (name, own) = &names[dice.below(names.len())];
            let own = own.first().copied().unwrap_or(1);
            let sizes = [1, 2, own / 2, own * 2, own * 4, 100, 400, 1_000];
            let size = sizes[dice.below(sizes.len())].max(1);
            scenario.model.dims.insert((*name).into(), size);
        }
    }
    for _ in 0..=dice.below(4) {
        let setting = &settings::all()[dice.below(settings::all().len())];
        let value = match setting.value_type {
            ValueType::Whole { low, high } => {
                let near = [low, low + 1, 8, 64, 129, 1000, high / 2, high];
                near[dice.below(near.len())].clamp(low, high).to_string()
            }
            ValueType::Number { low, high } => {
                [low, f64::midpoint(low, high), high][dice.below(3)].to_string()
            }
            ValueType::Switch => ["on", "off"][dice.below(2)].to_string(),
            ValueType::Choice(choices) => choices[dice.below(choices.len())].id.to_string(),
            _ => continue,
        };
        let _ = setting.set(&mut scenario, &value);
    }
    scenario
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |usual: u64| {
        let given = arguments.next();
        given.and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let (count, seed) = (number(250), number(1));
    let mut dice = Dice(seed);
    let (mut admitted, mut refused, mut long) = (0, 0, 0);
    let mut all: Vec<f64> = Vec::new();
    let mut given = std::io::stdin().lines();
    let mut tried = 0;
    while count == 0 || tried < count {
        let scenario = if count == 0 {
            let Some(Ok(link)) = given.next() else { break };
            share::read(&link).scenario
        } else {
            extreme(&mut dice)
        };
        if !scenario.check().is_empty() {
            continue;
        }
        tried += 1;
        let mut laps = Vec::new();
        let mut lap = |work: &mut dyn FnMut() -> bool| {
            let start = elapsed();
            let done = work();
            laps.push(elapsed() - start);
            done
        };
        let quick = lap(&mut || quick_peak(&scenario).is_ok());
        let prediction = Prediction::new(scenario.clone());
        let done = lap(&mut || prediction.estimate().is_ok());
        lap(&mut || prediction.smallest_card().is_ok());
        lap(&mut || prediction.ranks().is_ok());
        lap(&mut || prediction.step_time().is_ok());
        lap(&mut || prediction.typical().is_ok());
        admitted += u32::from(done);
        refused += u32::from(!done);
        let most = laps.iter().copied().fold(0.0, f64::max);
        let answer: f64 = laps.iter().skip(1).take(3).sum();
        all.push(answer);
        if most > 100.0 {
            long += 1;
            let laps: Vec<String> = laps.iter().map(|lap| format!("{lap:.0}")).collect();
            println!(
                "{} {quick} {done} {}",
                laps.join(" "),
                share::write(&scenario)
            );
        }
    }
    all.sort_by(f64::total_cmp);
    let at = |share: f64| {
        let place = (all.len().saturating_sub(1) as f64 * share) as usize;
        all.get(place).copied().unwrap_or_default()
    };
    println!(
        "{admitted} answered, {refused} refused; {long} with a part above 100 ms; answer: median {:.1} p90 {:.1} p99 {:.1} most {:.1} ms",
        at(0.5),
        at(0.9),
        at(0.99),
        at(1.0)
    );
}
