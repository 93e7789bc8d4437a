//! A menu: a button that opens a list of actions; Escape closes it.

use leptos::ev::KeyboardEvent;
use leptos::html;
use leptos::prelude::*;

use crate::shared::browser;

#[component]
pub fn Menu(title: &'static str, testid: &'static str, children: Children) -> impl IntoView {
    let menu = NodeRef::<html::Details>::new();
    let on_key = move |event: KeyboardEvent| {
        let open = menu
            .get_untracked()
            .filter(web_sys::HtmlDetailsElement::open);
        if let Some(menu) = open.filter(|_| event.key() == "Escape") {
            menu.set_open(false);
            browser::focus_soon(format!("[data-testid={testid}] summary"));
        }
    };
    view! {
        <details class="menu" data-testid=testid node_ref=menu on:keydown=on_key>
            <summary>{title}</summary>
            <div class="items" role="group" aria-label=title>
                {children()}
            </div>
        </details>
    }
}
