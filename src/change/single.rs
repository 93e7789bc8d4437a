//! Every change on its own, and what people also try.

use leptos::prelude::*;

use crate::change::advice::{Advice, MOVES};
use crate::shared::session::Session;

#[component]
pub fn EveryChange() -> impl IntoView {
    let session = Session::current();
    view! {
        <section class="panel" aria-label=MOVES.title class:stale=move || session.stale.get()>
            <Advice panel=&MOVES/>
        </section>
    }
}
