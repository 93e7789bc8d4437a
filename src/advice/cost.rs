//! What a step and an epoch cost, at a price per GPU hour that the person gives.

use leptos::prelude::*;

use crate::session::{Answer, Session};
use crate::text;
use crate::wishes::Wishes;
use headroom_base::decimal::decimal;
use headroom_scenario::Scenario;

/// Of one step and of one epoch; an epoch only where its samples are known.
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
    let Some(price) = decimal(&hourly.trim().replace(',', ".")).filter(|price| *price >= 0.0)
    else {
        return Some(text::NO_PRICE.into());
    };
    let time = answer.prediction.as_ref()?.step_time().ok()?;
    let (step, epoch) = costs(price, time.step.expected.get(), &answer.scenario);
    Some(text::costs(step, epoch))
}

/// The field for the price, and what that makes of the run on the screen.
#[component]
pub fn Hourly() -> impl IntoView {
    let session = Session::current();
    let hourly = Wishes::current().hourly;
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
    fn a_price_is_spread_over_steps_and_samples() {
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
