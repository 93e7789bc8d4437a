//! What plans must keep, and the program that they are for.

use leptos::prelude::*;

use crate::shared::browser;
use crate::shared::preferences::{AdvicePreferences, Keep};
use crate::text;

#[component]
pub fn Locks() -> impl IntoView {
    let preferences = AdvicePreferences::current();
    let lock = move |(at, (label, _)): (usize, (&'static str, _))| {
        let toggle = move |_| preferences.keep.update(|keep| keep.toggle(at));
        view! {
            <label><input type="checkbox" prop:checked=move || preferences.keep.get().has(at) on:change=toggle/>" "{label}</label>
        }
    };
    let program = move || {
        preferences.program.get().map(|target| {
            let free = move |_| {
                preferences.program.set(None);
                browser::focus_soon("#place-change".into());
            };
            view! {
                <p>
                    {text::only_expressible(target.title)}" "
                    <button type="button" class="plain" on:click=free>{text::ANY_PROGRAM}</button>
                </p>
            }
        })
    };
    view! {
        <fieldset class="locks">
            <legend>{text::KEEP}</legend>
            {Keep::ALL.into_iter().enumerate().map(lock).collect_view()}
        </fieldset>
        {program}
    }
}
