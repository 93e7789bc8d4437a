//! The page: Leptos views over the pure core; only `browser` touches what a browser owns.

mod browser;

use leptos::prelude::*;

/// Draws the page in the place of the static greeting in `index.html`.
pub fn start() {
    browser::report_panics();
    if let Some(place) = browser::clear("app") {
        leptos::mount::mount_to(place, App).forget();
    }
}

/// The whole page.
#[component]
fn App() -> impl IntoView {
    view! { <h1>"Headroom"</h1> }
}
