//! The copy button.

use leptos::prelude::*;

use crate::shared::browser;

use crate::text;

/// A copy button that confirms; if the browser refuses, it says what to do.
#[component]
pub fn CopyButton(
    name: &'static str,
    /// What is copied, if the button's label does not say it.
    label: &'static str,
    read: impl Fn() -> String + 'static,
    /// Whether it is the primary button.
    main: bool,
) -> impl IntoView {
    let shown = RwSignal::new(name);
    let copy = move |_| {
        browser::copy(&read(), move |done| {
            shown.try_set(if done {
                text::COPIED
            } else {
                text::COPY_YOURSELF
            });
        });
    };
    let named = move || (!label.is_empty()).then(|| format!("{} {label}", shown.get()));
    view! {
        <button type="button" class:primary=main aria-label=named on:click=copy on:blur=move |_| shown.set(name)>
            {shown}
        </button>
    }
}
