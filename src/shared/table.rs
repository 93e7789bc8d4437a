//! Tables and small elements shared by several panels.

use leptos::prelude::*;

/// A table: its first column names the rows, and the last `numbers` columns are numbers.
#[component]
pub fn Table(
    class: &'static str,
    head: Vec<&'static str>,
    numbers: usize,
    rows: Vec<Vec<String>>,
) -> impl IntoView {
    let columns = head.len();
    let class_of = move |column| (column + numbers >= columns).then_some("number");
    let title = |(column, text): (usize, &'static str)| {
        view! {
            <th scope="col" class=class_of(column)>
                {text}
            </th>
        }
    };
    let cell = move |(column, text): (usize, String)| match column {
        0 => view! { <th scope="row" class=class_of(column)>{text}</th> }.into_any(),
        _ => view! { <td class=class_of(column)>{text}</td> }.into_any(),
    };
    let row = |row: Vec<String>| {
        view! { <tr>{row.into_iter().enumerate().map(cell).collect_view()}</tr> }
    };
    view! {
        <table class=class>
            <thead>
                <tr>{head.into_iter().enumerate().map(title).collect_view()}</tr>
            </thead>
            <tbody>{rows.into_iter().map(row).collect_view()}</tbody>
        </table>
    }
}

/// The colour key of a part of the memory.
#[component]
pub fn Swatch(part: &'static str) -> impl IntoView {
    view! {
        <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
            <rect width="12" height="12" class=format!("part-{part}")></rect>
        </svg>
    }
}

/// A collapsible part of a panel whose content exists only while it is open.
#[component]
pub fn Folded(
    title: &'static str,
    #[prop(optional)] testid: Option<&'static str>,
    #[prop(optional)] class: Option<&'static str>,
    #[prop(optional)] id: Option<&'static str>,
    children: ChildrenFn,
) -> impl IntoView {
    let open = RwSignal::new(false);
    let on_toggle = move |event: leptos::ev::Event| {
        let now = crate::shared::browser::is_open(&event);
        if open.get_untracked() != now {
            open.set(now);
        }
    };
    view! {
        <details class=class.unwrap_or("numbers") id=id data-testid=testid on:toggle=on_toggle>
            <summary>{title}</summary>
            <Show when=move || open.get()>{children()}</Show>
        </details>
    }
}
