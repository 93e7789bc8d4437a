//! A collapsed table of advice.

use leptos::prelude::*;

use super::sheet::Sheet;
use super::table::SheetTable;
use crate::shared::follow::follow_preferences;
use crate::shared::signals::{memo, track_open};
use crate::shared::worker::{Helper, JobKind};
use crate::text;

/// A table that the worker fills.
#[derive(Debug)]
pub struct Panel {
    pub kind: JobKind,
    pub title: &'static str,
    pub about: &'static str,
    pub head: &'static [&'static str],
    /// Whether it starts open.
    pub open: bool,
    /// Whether it can be sorted by its columns.
    pub sortable: bool,
}

/// The table, and above it what belongs to it. It is filled while it is open.
#[component]
pub fn Advice(
    panel: &'static Panel,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    let helper = Helper::new(panel.kind.id);
    let open = RwSignal::new(panel.open);
    follow_preferences(
        crate::shared::session::Session::current(),
        helper,
        move || open.get(),
    );
    let sheet = memo(move || helper.reply.with(|reply| Sheet::read(&reply.lines)));
    let waiting = move || !helper.reply.with(|reply| reply.done);
    // A table that arrives in one piece shows that it is being computed.
    let nothing_yet = move || {
        !helper
            .reply
            .with(|reply| reply.done || !reply.lines.is_empty())
    };
    let id = panel.kind.id;
    view! {
        <details
            class="more"
            data-testid=id
            open=panel.open
            on:toggle=move |event| track_open(&event, open)
        >
            <summary><h4 id=format!("{id}-title")>{panel.title}</h4></summary>
            <p class="quiet">{panel.about}</p>
            {children.map(|children| children())}
            <p class="working" hidden=move || !nothing_yet()>{text::WORKING}</p>
            <div class="scroller advice" aria-busy=move || waiting().to_string()>
                <SheetTable sheet head=panel.head sortable=panel.sortable focus="#place-change"/>
            </div>
        </details>
    }
}
