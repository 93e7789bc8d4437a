//! The cost of a step and an epoch, at the user's price per GPU hour.

use leptos::prelude::*;

use crate::shared::preferences::AdvicePreferences;
use crate::shared::session::{Answer, Session};
use crate::text;
use headroom_scenario::Scenario;

/// The cost of one step and one epoch; the latter only if the number of samples is known.
fn costs(hourly: f64, seconds: f64, scenario: &Scenario) -> (f64, Option<f64>) {
    let gpus = f64::from(scenario.hardware.gpus.max(1));
    let step = hourly * gpus * seconds / 3600.0;
    let samples = scenario.data.samples as f64;
    let batch = scenario.effective_batch().max(1) as f64;
    let epoch = (samples > 0.0).then(|| step * (samples / batch).ceil());
    (step, epoch)
}

fn sentence(answer: &Answer, hourly: &str) -> Option<String> {
    if hourly.trim().is_empty() {
        return None;
    }
    let Some(price) = hourly
        .trim()
        .replace(',', ".")
        .parse()
        .ok()
        .filter(|price| (0.0..f64::INFINITY).contains(price))
    else {
        return Some(text::NO_PRICE.into());
    };
    let time = answer.prediction.as_ref()?.step_time().ok()?;
    let (step, epoch) = costs(price, time.step.expected.get(), &answer.scenario);
    Some(text::costs(step, epoch))
}

/// The price field, and the cost of the current run.
#[component]
pub fn Hourly() -> impl IntoView {
    let session = Session::current();
    let hourly = AdvicePreferences::current().hourly;
    let cost = move || {
        session
            .answer
            .with(|answer| sentence(answer, &hourly.get()))
    };
    view! {
        <div class="actions">
            <label for="hourly">{text::HOURLY}</label>
            <input id="hourly" type="text" inputmode="decimal" size="6" autocomplete="off" placeholder="1.50"
                prop:value=move || hourly.get() on:input:target=move |event| hourly.set(event.target().value())/>
            <span role="status">{cost}</span>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_gives_the_cost_of_a_step_and_an_epoch() {
        let mut scenario = Scenario::default();
        let check = |scenario: &Scenario, expected: (f64, Option<f64>)| {
            assert_eq!(costs(3.6, 2.0, scenario), expected);
        };
        check(&scenario, (0.002, None));
        scenario.data.samples = 81;
        check(&scenario, (0.002, Some(0.022)));
        scenario.hardware.gpus = 2;
        check(&scenario, (0.004, Some(0.024)));
    }
}
