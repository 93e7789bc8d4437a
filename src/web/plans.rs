//! The panel of saved plans.

use leptos::prelude::*;
use web_sys::Event;

use super::markup::escape;
use super::part::Part;
use super::plan_store::{self, Plans, kept};
use super::session::Session;
use super::{browser, text};

/// Keeps them; where the browser refuses, that is said.
pub fn keep(session: Session, plans: &Plans) {
    session.plans.set(plans.clone());
    if !plan_store::store(plans) {
        session.link_notes.set(vec![text::NOT_KEPT.into()]);
    }
}

pub fn view(session: Session) -> Part {
    let name = RwSignal::new(String::new());
    let change = move |change: &dyn Fn(&mut Plans)| {
        // Another tab may have saved meanwhile.
        let mut plans = kept();
        change(&mut plans);
        keep(session, &plans);
    };
    let save = move |_| {
        let link = session.link_untracked();
        change(&|it| it.save(&name.get_untracked(), link.clone()));
        name.set(String::new());
    };
    let press = move |event: Event| {
        let open = browser::attribute_under(&event, "data-open");
        if let Some(link) = session.plans.with_untracked(|it| it.link(&open)) {
            session.open(&link);
        }
        let forget = browser::attribute_under(&event, "data-forget");
        if !forget.is_empty() {
            change(&|it| it.remove(&forget));
        }
    };
    let all = move |_| {
        let file = session.plans.with_untracked(Plans::write);
        browser::download("headroom-plans.json", "application/json", &file);
    };
    let none = move || session.plans.with(|it| it.all().next().is_none());
    let unnamed = move || name.with(|it| it.trim().is_empty());
    Part::new(&format!(
        r#"<details class="plans" data-testid="plans">
            <summary>{}</summary>
            <ul></ul>
            <div class="actions">
                <input type="text" aria-label="{named}" placeholder="{named}" autocomplete="off">
                <button type="button" data-do="save">Save</button>
                <button type="button" class="plain" data-do="all">Save all as a file</button>
            </div>
            <p class="quiet">{}</p>
        </details>"#,
        text::PLANS,
        text::PLANS_ARE_LOCAL,
        named = text::PLAN_NAME,
    ))
    .html("ul", move || session.plans.with(html))
    .on("ul", "click", press)
    .value("input", move || name.get())
    .on("input", "input", move |event| {
        name.set(browser::value_under(&event));
    })
    .flag("[data-do=save]", "disabled", unnamed)
    .on("[data-do=save]", "click", save)
    .flag("[data-do=all]", "disabled", none)
    .on("[data-do=all]", "click", all)
}

/// The list of plans; names come from files of others.
fn html(plans: &Plans) -> String {
    let row = |(at, (name, _)): (usize, &(String, String))| {
        let name = escape(name);
        format!(
            "<li><button type=\"button\" class=\"plain\" data-open=\"{at}\">{name}</button>\
                 <button type=\"button\" class=\"plain quiet\" data-forget=\"{at}\" aria-label=\"{} {name}\">×</button></li>",
            text::FORGET
        )
    };
    plans.all().enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_not_trusted() {
        let mut plans = Plans::default();
        plans.save("<script>", "v=1".into());
        let html = html(&plans);
        assert!(html.contains("&lt;script&gt;") && !html.contains("<script>"));
    }
}
