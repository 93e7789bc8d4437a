//! Laws that every prediction obeys, on scenarios made up at random; and sizes beyond all reason, which get an answer or a
//! refusal. `HEADROOM_CASES` says how many are tried of each.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;
use std::panic;

use headroom_base::units::Bytes;
use headroom_catalog as catalog;
use headroom_core::allocator::Card;
use headroom_core::estimate::{self, Band, Prediction, estimate, quick_peak};
use headroom_scenario::settings::{self, ValueType};
use headroom_scenario::share;
use headroom_scenario::{Distribution, Parallelism, Scenario, presets};
use headroom_testing::{Dice, cases};

fn with(scenario: &Scenario, changes: &[(&str, &str)]) -> Scenario {
    let mut scenario = scenario.clone();
    for (name, value) in changes {
        settings::set(&mut scenario, name, value).unwrap();
    }
    scenario
}

/// A preset, or a model of each architecture in turn, made smaller where that is possible.
fn small(dice: &mut Dice) -> Scenario {
    headroom_systems::install();
    let mut scenario = if dice.index(2) == 0 {
        presets::all()[dice.index(presets::all().len())].scenario()
    } else {
        let models = catalog::models();
        let mut scenario = Scenario::of_model(&models[dice.index(models.len())]);
        scenario.data.micro_batch = 2;
        scenario
    };
    if let Some(entry) = catalog::model(&scenario.model.id) {
        for (name, most) in [("layers", 4), ("vocab", 8_000)] {
            if entry.size(name).is_some_and(|size| size > most) {
                scenario.model.dims.insert(name.into(), most);
            }
        }
    }
    scenario.data.sequence = scenario.data.sequence.min(256);
    let set = |scenario: &mut Scenario, name: &str, value: &str| {
        settings::set(scenario, name, value).unwrap();
    };
    let choices: [(&str, &[&str]); 7] = [
        (
            "optim",
            &["adamw", "adamw-fused", "sgd", "adafactor", "lion"],
        ),
        ("precision", &["amp-bf16", "bf16", "fp32", "amp-fp16"]),
        ("attn", &["sdpa", "eager"]),
        ("ckpt", &["none", "none", "layers"]),
        ("accum", &["1", "1", "2"]),
        ("clip", &["on", "off"]),
        ("ema", &["off", "off", "on"]),
    ];
    for (name, values) in choices {
        if dice.index(3) == 0 {
            let value = dice.one_of(values);
            set(&mut scenario, name, value);
        }
    }
    scenario
}

/// The peak, where the scenario is one that runs.
fn peak(scenario: &Scenario) -> Option<Bytes> {
    if scenario.check().is_empty() {
        quick_peak(scenario).ok()
    } else {
        None
    }
}

/// A law on trial: what breaks it, with the scenario as a link, all shown at once; and how often it was put to the test.
struct Law {
    broken: Vec<String>,
    compared: usize,
    /// Fewer comparisons than this prove nothing: where scenarios are refused, none is made.
    least: usize,
}

impl Law {
    const fn compared_at_least(least: usize) -> Self {
        Self {
            broken: Vec::new(),
            compared: 0,
            least,
        }
    }

    fn holds(&mut self, kept: bool, what: &str, scenario: &Scenario) {
        self.compared += 1;
        if !kept {
            self.breaks(what, scenario);
        }
    }

    fn breaks(&mut self, what: &str, scenario: &Scenario) {
        self.broken
            .push(format!("{what}: {}", share::write(scenario)));
    }

    fn no_less(&mut self, smaller: &Scenario, larger: &Scenario, law: &str) {
        if let (Some(less), Some(more)) = (peak(smaller), peak(larger)) {
            self.holds(less <= more, &format!("{law}: {less} {more}"), smaller);
        }
    }
}

impl Drop for Law {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert!(self.broken.is_empty(), "{}", self.broken.join("\n"));
            let (compared, least) = (self.compared, self.least);
            assert!(compared >= least, "{compared} comparisons, not {least}");
        }
    }
}

#[test]
fn more_of_anything_needs_no_less() {
    let tried = cases(9);
    let mut law = Law::compared_at_least(3 * tried);
    let mut dice = Dice::new(1);
    for _ in 0..tried {
        let scenario = small(&mut dice);
        let mut larger = scenario.clone();
        larger.data.micro_batch += 1 + dice.index(3) as u64;
        law.no_less(&scenario, &larger, "micro-batch");
        let mut longer = scenario.clone();
        longer.data.sequence += 64;
        law.no_less(&scenario, &longer, "sequence");
        let Some(entry) = catalog::model(&scenario.model.id) else {
            continue;
        };
        for (name, times, plus) in [
            ("layers", 1, 1),
            ("hidden", 2, 0),
            ("ffn", 2, 0),
            ("vocab", 1, 64),
        ] {
            let own = scenario.model.dims.get(name).copied();
            let Some(size) = own.or_else(|| entry.size(name)) else {
                continue;
            };
            let mut more = scenario.clone();
            more.model.dims.insert(name.into(), size * times + plus);
            law.no_less(&scenario, &more, name);
        }
    }
}

#[test]
fn fewer_bits_need_no_more() {
    let tried = cases(10);
    let mut law = Law::compared_at_least(2 * tried);
    let mut dice = Dice::new(2);
    for _ in 0..tried {
        let scenario = small(&mut dice);
        for (less, more) in [
            ("bf16", "fp32"),
            ("fp16", "fp32"),
            ("fp32", "fp64"),
            ("bf16", "amp-bf16"),
        ] {
            let of = |precision| with(&scenario, &[("precision", precision)]);
            law.no_less(&of(less), &of(more), more);
        }
    }
}

#[test]
fn checkpoints_keep_no_more() {
    let tried = cases(5);
    let mut law = Law::compared_at_least(2 * tried);
    let mut dice = Dice::new(3);
    for _ in 0..tried {
        // Without the native allocator's blocks that are handed out larger than asked for.
        let plain = with(&small(&mut dice), &[("ckpt", "none"), ("expandable", "on")]);
        // DreaMS was measured to need more with its checkpoints: 9.26 GiB, and 8.59 without.
        if plain.model.id.starts_with("dreams") {
            continue;
        }
        let kept = |scenario: &Scenario| {
            let fine = scenario.check().is_empty();
            fine.then(|| estimate(scenario).ok())
                .flatten()
                .map(|estimate| estimate.forward_end)
        };
        for way in ["layers", "keep-matmuls", "keep-attention", "offload"] {
            let less = with(&plain, &[("ckpt", way)]);
            if let (Some(less_kept), Some(all)) = (kept(&less), kept(&plain)) {
                let said = format!("{way}: {less_kept} {all}");
                law.holds(less_kept <= all, &said, &plain);
            }
        }
    }
}

#[test]
fn parts_are_the_whole_and_what_stays_is_what_lasts() {
    use estimate::Category::{Buffers, Ema, OptimizerStates, Parameters};
    let tried = cases(10);
    let mut law = Law::compared_at_least(tried);
    let mut dice = Dice::new(4);
    for _ in 0..tried {
        let scenario = small(&mut dice);
        if !scenario.check().is_empty() {
            continue;
        }
        let Ok(found) = estimate(&scenario) else {
            continue;
        };
        let whole = found.allocated.expected;
        let parts: Bytes = found.breakdown.iter().map(|part| part.bytes).sum();
        let modules: Bytes = found.modules.iter().map(|module| module.bytes).sum();
        let said = format!("{parts} and {modules} are not {whole}");
        law.holds((parts, modules) == (whole, whole), &said, &scenario);
        let training = &scenario.training;
        if training.keep_outputs
            || !training.zero_to_none
            || training.zero_late
            || training.use_cache
            // Buckets of gradients stay.
            || scenario.hardware.gpus > 1
            || scenario.data.distribution == Distribution::Varying
        {
            continue;
        }
        // What is there at every peak, and no more than the allocator's rounding, the batch and a loss beside it.
        let lasting = [Parameters, Buffers, OptimizerStates, Ema];
        let parts = found.breakdown.iter();
        let lasting: Bytes = parts
            .filter(|part| lasting.contains(&part.what))
            .map(|part| part.bytes)
            .sum();
        let prediction = Prediction::new(scenario.clone());
        let many = prediction.many_steps(5).unwrap();
        let many = many.on(Card::UNLIMITED, &scenario.runtime);
        let ends: Vec<Bytes> = many
            .steps
            .iter()
            .skip(1)
            .map(|step| step.allocated_end)
            .collect();
        let same = ends.windows(2).all(|pair| pair[0] == pair[1]);
        law.holds(same, &format!("{ends:?}"), &scenario);
        let beside = found.between_steps.saturating_sub(lasting);
        let little = beside <= lasting.scale(0.02) + Bytes::mib(160);
        law.holds(little, &format!("{beside} beside {lasting}"), &scenario);
    }
}

#[test]
fn what_is_allocated_is_reserved_and_what_is_reserved_lies_on_the_device() {
    let tried = cases(40);
    let mut law = Law::compared_at_least(tried / 2);
    let mut dice = Dice::new(7);
    for case in 0..tried {
        let mut scenario = small(&mut dice);
        // Every strategy in turn, on one GPU and on several.
        let strategy = Parallelism::ALL[case % Parallelism::ALL.len()];
        if case % 4 > 0 {
            let nodes = dice.one_of(&["1", "2", "4"]);
            let gpus = dice.one_of(&["4", "8", "64"]);
            let offload = dice.one_of(&["none", "none", "optimizer", "parameters"]);
            let several = [
                ("par", strategy.id()),
                ("gpus", gpus),
                ("nodes", nodes),
                ("offload", offload),
            ];
            scenario = with(&scenario, &several);
        }
        if dice.index(3) == 0 {
            scenario = with(&scenario, &[("expandable", "on")]);
        }
        if !scenario.check().is_empty() {
            continue;
        }
        let Ok(found) = estimate(&scenario) else {
            continue;
        };
        let bands = [found.allocated, found.reserved, found.device];
        let rising = |pick: fn(&Band) -> Bytes| bands.iter().map(pick).is_sorted();
        let ordered = rising(|band| band.low) && rising(|band| band.expected);
        let ordered = ordered && rising(|band| band.high);
        law.holds(ordered, &format!("{bands:?}"), &scenario);
        let inside = |band: &Band| band.low <= band.expected && band.expected <= band.high;
        law.holds(bands.iter().all(inside), &format!("{bands:?}"), &scenario);
    }
}

/// What a search over thousands of runs goes by is what the estimate then says: never more, and less only by what the allocator
/// rounds up in large blocks.
#[test]
fn the_quick_peak_is_never_above_every_ranks() {
    let tried = cases(80);
    let mut law = Law::compared_at_least(tried / 3);
    let mut dice = Dice::new(11);
    for case in 0..tried {
        let mut scenario = small(&mut dice);
        if case % 4 > 0 {
            let several = [
                ("par", dice.one_of(&["ddp", "fsdp2", "zero1", "none"])),
                ("gpus", "8"),
                ("tp", dice.one_of(&["1", "1", "2"])),
                ("pp", dice.one_of(&["1", "2", "4"])),
                ("schedule", dice.one_of(&["1f1b", "gpipe"])),
                ("accum", dice.one_of(&["1", "2", "4", "8"])),
            ];
            scenario = with(&scenario, &several);
        }
        let Some(quick) = peak(&scenario) else {
            continue;
        };
        let prediction = Prediction::new(scenario.clone());
        let Ok(ranks) = prediction.ranks() else {
            continue;
        };
        let most = ranks.iter().map(|rank| rank.allocated.expected).max();
        let most = most.unwrap_or_default();
        law.holds(quick <= most, &format!("{quick} of {most}"), &scenario);
    }
}

/// Sizes that no run has, and those at the edges of types.
const ODD: [u64; 12] = [
    0,
    1,
    2,
    3,
    1_000,
    9_999_991,
    10_000_000,
    1_000_000_000,
    1 << 32,
    1_000_000_000_000_000,
    1 << 62,
    u64::MAX,
];

/// An answer or a refusal; `quick_peak` refuses what would take too much work.
fn answers(law: &mut Law, scenario: &Scenario, what: &str) {
    // Debug builds check every sum for overflow.
    let found = panic::catch_unwind(|| {
        let refused = !scenario.check().is_empty();
        (refused, quick_peak(scenario))
    });
    match found {
        Err(_) => law.breaks(&format!("{what} panics"), scenario),
        Ok((false, Ok(peak))) => law.holds(peak > Bytes::ZERO, what, scenario),
        Ok(_) => {}
    }
}

#[test]
fn odd_sizes_of_every_network_are_answered_or_refused() {
    headroom_systems::install();
    let most = cases(150);
    let mut law = Law::compared_at_least(most / 8);
    let mut dice = Dice::new(5);
    let mut one_each: BTreeMap<&str, &catalog::ModelEntry> = BTreeMap::new();
    for model in catalog::models() {
        one_each.entry(model.arch).or_insert(model);
    }
    let mut all: Vec<(&catalog::ModelEntry, &str, u64)> = Vec::new();
    for model in one_each.values() {
        for (name, _) in model.sizes() {
            all.extend(ODD.map(|size| (*model, name, size)));
        }
    }
    for number in 0..most.min(all.len()) {
        let at = if most >= all.len() {
            number
        } else {
            dice.index(all.len())
        };
        let (model, name, size) = all[at];
        let mut scenario = Scenario::of_model(model);
        scenario.data.micro_batch = 1;
        scenario.data.sequence = scenario.data.sequence.min(64);
        scenario.model.dims.insert(name.into(), size);
        let mut what = format!("{} {name} = {size}", model.id);
        if dice.index(3) == 0 {
            let names = model.sizes();
            let (second, _) = names[dice.index(names.len())];
            let size = ODD[dice.index(ODD.len())];
            scenario.model.dims.insert(second.into(), size);
            what += &format!(", {second} = {size}");
        }
        answers(&mut law, &scenario, &what);
    }
}

#[test]
fn odd_values_of_every_field_are_answered_or_refused() {
    let tried = cases(60);
    let mut law = Law::compared_at_least(tried / 4);
    let mut dice = Dice::new(6);
    for _ in 0..tried {
        let mut scenario = small(&mut dice);
        let mut what = scenario.model.id.clone();
        for _ in 0..=dice.index(3) {
            let setting = &settings::all()[dice.index(settings::all().len())];
            let value = match setting.value_type {
                ValueType::Whole { low, high } => {
                    let near = [low, low + 1, high / 2, high - 1, high];
                    near[dice.index(near.len())].to_string()
                }
                ValueType::Number { low, high } => {
                    [low, f64::midpoint(low, high), high][dice.index(3)].to_string()
                }
                ValueType::Switch => dice.one_of(&["on", "off"]).to_string(),
                ValueType::Choice(choices) => choices[dice.index(choices.len())].id.to_string(),
                _ => continue,
            };
            if setting.set(&mut scenario, &value).is_ok() {
                what += &format!(" {}={value}", setting.path);
            }
        }
        answers(&mut law, &scenario, &what);
        if scenario.check().is_empty() && dice.index(8) == 0 {
            // The rest of what is shown, too.
            let _ = estimate(&scenario);
        }
    }
}

#[test]
fn tasks_of_models_that_read_pictures_read_them() {
    let models = [
        "aya-vision-8b",
        "gemma-3-4b",
        "internvl3-1b",
        "llava-1.5-7b",
        "llava-onevision-0.5b",
        "pixtral-12b",
        "qwen2.5-vl-3b",
        "qwen3-vl-2b",
        "smolvlm2-256m",
    ];
    for id in models {
        let base = with(
            &Scenario::of_model(catalog::model(id).unwrap()),
            &[("dims", "layers=2"), ("mb", "4"), ("seq", "256")],
        );
        let own = estimate(&base).unwrap().parameters;
        for objective in ["sft", "dpo", "grpo", "rloo"] {
            let mut task = with(&base, &[("task", objective)]);
            if matches!(objective, "grpo" | "rloo") {
                task = with(&task, &[("generations", "4")]);
            }
            let peak = |images| {
                let scenario = with(&task, &[("images", images)]);
                let found = estimate(&scenario).unwrap_or_else(|e| panic!("{id} {objective}: {e}"));
                assert!(found.parameters >= own, "{id} {objective}");
                found.allocated.expected
            };
            assert!(peak("2") > peak("0"), "{id} {objective}");
        }
        let refused = with(&base, &[("task", "kto")]);
        assert!(estimate(&refused).is_err(), "{id}");
    }
}
