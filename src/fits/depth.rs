//! More about the answer, folded: how sure it is, what it assumes and leaves out, the host, fragmentation, a network of
//! one's own.

use leptos::prelude::*;

use crate::change::advice::ManySteps;
use crate::fits::host::HostAndDisk;
use crate::fits::network::OwnNetwork;
use crate::fits::stack::StackDefaults;
use crate::fits::trust::Trust;
use crate::shared::session::Session;
use crate::text;

#[component]
pub fn Depth(width: ReadSignal<u32>) -> impl IntoView {
    view! {
        <section class="depth" aria-label=text::DEPTH>
            <Trust/>
            <Limits/>
            <StackDefaults/>
            <HostAndDisk/>
            <ManySteps width/>
            <OwnNetwork/>
        </section>
    }
}

/// What the estimate leaves out.
#[component]
fn Limits() -> impl IntoView {
    let session = Session::current();
    let items = move || {
        let estimate = session.estimate.get();
        let lines = estimate.map(|estimate| estimate.not_modelled.clone());
        let item = |line: String| view! { <li>{line}</li> };
        lines
            .unwrap_or_default()
            .into_iter()
            .map(item)
            .collect_view()
    };
    view! {
        <section class="panel screen-only" aria-label=text::NOT_MODELLED>
            <details class="more" id="not-modelled">
                <summary>{text::NOT_MODELLED}</summary>
                <ul class="plain-list">{items}</ul>
            </details>
        </section>
    }
}
