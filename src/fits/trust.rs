//! The accuracy of the answer: predictions and measurements of the most similar recorded runs.

use leptos::prelude::*;

use crate::shared::session::Session;
use crate::shared::signals::memo;
use crate::shared::table::{Folded, Table};
use crate::text;
use headroom_base::order::sorted;
use headroom_base::units::{Bytes, UnitStyle};
use headroom_scenario::{Case, Optimizer, Precision, Scenario};

/// A recorded run: its name in the accuracy data, its measured and its predicted memory, in MiB.
type Recorded = (&'static str, u32, u32);

#[allow(clippy::unreadable_literal)] // written by the build script
const RECORDED: &[Recorded] = include!(concat!(env!("OUT_DIR"), "/accuracy.rs"));

/// The number of runs shown.
const MOST: usize = 8;

#[component]
pub fn Trust() -> impl IntoView {
    let session = Session::current();
    let rows = memo(move || {
        let units = session.units.get();
        session
            .settled
            .with(|answer| rows(&most_similar(&answer.scenario), units))
    });
    let about = move || {
        let known = session.settled.with(|answer| is_recorded(&answer.scenario));
        if known {
            text::TRUST_SAME
        } else {
            text::TRUST_LIKE
        }
    };
    let table = move || {
        let head = vec!["Recorded run", "Measured", "Predicted", "Off by"];
        view! { <Table class="plain-table" head numbers=3 rows=rows.get()/> }
    };
    view! {
        <section class="panel" aria-label=text::TRUST data-testid="trust">
            <Folded title=text::TRUST class="more" id="trust">
                <p class="quiet">{about}</p>
                <div class="scroller" tabindex="0" role="region" aria-label=text::RECORDED_RUNS>
                    {table}
                </div>
                <p class="quiet">{text::TRUST_ALL}</p>
            </Folded>
        </section>
    }
}

/// Only letters and digits, since spellings of model names vary.
fn normalized(text: &str) -> String {
    let plain = text.chars().filter(char::is_ascii_alphanumeric);
    plain.collect::<String>().to_ascii_lowercase()
}

fn model(scenario: &Scenario) -> String {
    normalized(Case::of(scenario).model.map_or("", |model| model.id))
}

/// Whether this model has recorded runs.
fn is_recorded(scenario: &Scenario) -> bool {
    let model = model(scenario);
    !model.is_empty()
        && RECORDED
            .iter()
            .any(|(case, ..)| normalized(case).contains(&model))
}

/// The recorded runs most similar to a scenario: same model first, then same family, then same method.
fn most_similar(scenario: &Scenario) -> Vec<Recorded> {
    let model = model(scenario);
    let family: String = model
        .chars()
        .take_while(char::is_ascii_alphabetic)
        .collect();
    let training = &scenario.training;
    let is_quantized = !matches!(training.quantization.id(), "none");
    let method = match (&training.lora, is_quantized) {
        (Some(_), true) => "qlora",
        (Some(_), false) => "lora",
        (None, _) => "full",
    };
    let precision = match training.precision {
        Precision::AmpBf16 => "ampbf16",
        precision => precision.id(),
    };
    let optimizer = match training.optimizer {
        Optimizer::AdamWFused => "adamwfused",
        optimizer => optimizer.id(),
    };
    let score = |case: &str| {
        let case = normalized(case);
        let holds = |word: &str, worth: u32| {
            if !word.is_empty() && case.contains(word) {
                worth
            } else {
                0
            }
        };
        let other = (method != "qlora" && case.contains("qlora"))
            || (method == "full" && case.contains("lora"));
        holds(&model, 16)
            + holds(&family, 8)
            + holds(method, 4)
            + holds(precision, 2)
            + holds(optimizer, 1)
            - u32::from(other).min(1) * holds(&family, 3)
    };
    let ranked = RECORDED.iter().map(|run| (score(run.0), run));
    let ranked = sorted(ranked, |(one, _), (other, _)| other.cmp(one));
    ranked.into_iter().take(MOST).map(|(_, run)| *run).collect()
}

fn rows(runs: &[Recorded], units: UnitStyle) -> Vec<Vec<String>> {
    let row = |(case, truth, predicted): &Recorded| {
        let [truth, predicted] = [truth, predicted].map(|mib| Bytes::mib(u64::from(*mib)));
        let off = (predicted.get() as f64 / truth.get().max(1) as f64 - 1.0) * 100.0;
        let off = if off.abs() < 0.05 {
            "0.0 %".into()
        } else {
            format!("{off:+.1} %").replace('-', "−")
        };
        vec![
            case.replace('_', " "),
            truth.show(units),
            predicted.show(units),
            off,
        ]
    };
    runs.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use headroom_scenario::presets;

    #[test]
    fn the_most_similar_runs_have_the_same_model_or_family() {
        #[track_caller]
        fn check(preset: &str, expected: &str) {
            let scenario = presets::find(preset).unwrap().scenario();
            let runs = most_similar(&scenario);
            assert_eq!(runs.len(), MOST);
            assert!(
                normalized(runs[0].0).contains(expected),
                "{preset}: {}",
                runs[0].0
            );
        }
        check("gpt2-small", "gpt2ampbf16");
        check("llama-8b-lora-24gb", "llama318bbf16adamw");
        check("resnet-50-16gb", "resnet50");
    }

    #[test]
    fn differences_have_a_sign() {
        let rows = rows(&[("a_b", 1000, 900), ("c", 1000, 1000)], UnitStyle::Binary);
        assert_eq!(rows[0][0], "a b");
        assert_eq!(
            (rows[0][3].as_str(), rows[1][3].as_str()),
            ("−10.0 %", "0.0 %")
        );
    }
}
