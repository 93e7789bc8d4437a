//! What to change until the run fits: the ladder's steps, each with what it comes to and a button that takes it.

use std::time::Duration;

use leptos::ev::MouseEvent;
use leptos::prelude::*;

use super::markup::escape;
use super::session::Session;
use super::worker::{Helper, Kind, Work};
use super::{browser, compare, text};
use crate::scenario::Scenario;
use crate::share;
use crate::strategy::{self, Cost};
use crate::units::{Bytes, UnitStyle};

/// How a worker finds it.
pub const KIND: Kind = Kind {
    id: "ladder",
    start: |scenario| {
        Box::new(Search {
            scenario: scenario.clone(),
            found: None,
        })
    },
};

struct Search {
    scenario: Scenario,
    found: Option<Vec<String>>,
}

impl Work for Search {
    fn is_done(&self) -> bool {
        self.found.is_some()
    }

    fn step(&mut self) {
        self.found = Some(match strategy::ladder(&self.scenario) {
            Ok(ladder) => lines(&ladder),
            Err(problem) => vec![format!("problem\t{}", problem.0)],
        });
    }

    fn lines(&self) -> Vec<String> {
        self.found.clone().unwrap_or_default()
    }
}

/// The start, each step, and whether the last fits.
fn lines(ladder: &strategy::Ladder) -> Vec<String> {
    let step = |it: &strategy::Step| {
        let cost = match it.cost {
            Cost::Free => text::COSTS_NOTHING,
            Cost::Time => text::COSTS_TIME,
            Cost::Results => text::CHANGES_RESULTS,
        };
        let bytes = it.estimate.device.expected.get();
        let link = share::write(&it.scenario);
        format!("step\t{bytes}\t{link}\t{}\t{cost}\t{}", it.title, it.price)
    };
    let start = format!("start\t{}", ladder.start.device.expected.get());
    let end = format!("end\t{}", u8::from(ladder.fits));
    [start]
        .into_iter()
        .chain(ladder.steps.iter().map(step))
        .chain([end])
        .map(|it| it.replace('\n', " "))
        .collect()
}

/// What is shown of it: a row for each step with its memory and a button.
fn html(lines: &[String], units: UnitStyle) -> String {
    let mut rows = String::new();
    let mut before = Bytes::ZERO;
    let mut last = "";
    for line in lines {
        let parts: Vec<&str> = line.split('\t').collect();
        let number = |text: &str| Bytes::new(text.parse().unwrap_or_default());
        match parts[..] {
            ["problem", problem] => return format!("<p>{}</p>", escape(problem)),
            ["start", bytes] => before = number(bytes),
            ["step", bytes, link, title, cost, price] => {
                let after = number(bytes);
                rows.push_str(&format!(
                    "<tr><th scope=\"row\">{}<span class=\"quiet\"> {}</span></th><td>{cost}</td>\
                     <td class=\"number\">{}</td><td class=\"number\">{}</td>\
                     <td><button type=\"button\" data-link=\"{}\">{}</button></td></tr>",
                    escape(title),
                    escape(price),
                    compare::change(before, after, units),
                    after.show(units),
                    escape(link),
                    text::APPLY,
                ));
                before = after;
            }
            ["end", fits] => last = fits,
            _ => {}
        }
    }
    let said = match (last, rows.is_empty()) {
        ("", _) => text::LOOKING,
        ("1", true) => text::FITS_AS_IT_IS,
        ("1", false) => text::LADDER,
        _ => text::LADDER_FAILS,
    };
    if rows.is_empty() {
        return format!("<p>{said}</p>");
    }
    format!(
        "<p>{said}</p><table class=\"plain-table\"><thead><tr><th scope=\"col\">{}</th><th scope=\"col\">{}</th>\
         <th scope=\"col\" class=\"number\">{}</th><th scope=\"col\" class=\"number\">{}</th><td></td></tr></thead>\
         <tbody>{rows}</tbody></table>",
        text::CHANGE,
        text::COSTS,
        text::SAVES,
        text::AFTER
    )
}

#[component]
pub fn Ladder(session: Session) -> impl IntoView {
    let helper = Helper::new(KIND.id);
    let ask = move |scenario: Scenario| helper.ask(scenario);
    let ask = StoredValue::new_local(debounce(Duration::from_millis(200), ask));
    // The outside here is the worker.
    Effect::new(move || {
        let scenario = session.answer.with(|it| (*it.scenario).clone());
        ask.update_value(|ask| ask(scenario));
    });
    let shown = move || helper.reply.with(|it| html(&it.lines, session.units.get()));
    let apply = move |event: MouseEvent| {
        let link = browser::attribute_under(&event, "data-link");
        if !link.is_empty() {
            session.try_out(share::read(&link).scenario);
        }
    };
    view! {
        <section class="panel" class:stale=session.stale aria-labelledby="ladder-title" data-testid="ladder">
            <header><h2 id="ladder-title">{text::WHAT_TO_CHANGE}</h2></header>
            <div class="ladder" on:click=apply inner_html=shown></div>
        </section>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(change: impl FnOnce(&mut Scenario)) -> String {
        let mut scenario = Scenario::default();
        change(&mut scenario);
        let mut work = (KIND.start)(&scenario);
        assert!(!work.is_done());
        work.step();
        assert!(work.is_done());
        html(&work.lines(), UnitStyle::Binary)
    }

    #[test]
    fn steps_have_buttons_that_lead_to_their_scenarios() {
        let html = shown(|it| it.data.micro_batch = 64);
        assert!(html.contains(text::LADDER), "{html}");
        let link = html.split("data-link=\"").nth(1).unwrap();
        let link = link.split('"').next().unwrap().replace("&amp;", "&");
        assert!(share::read(&link).problems.is_empty());
    }

    #[test]
    fn where_nothing_needs_to_change_that_is_said() {
        let html = shown(|it| it.data.micro_batch = 1);
        assert!(html.contains(text::FITS_AS_IT_IS) && !html.contains("button"));
        assert!(super::html(&[], UnitStyle::Binary).contains(text::LOOKING));
    }
}
