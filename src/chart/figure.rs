//! A chart on the page: the drawing, and one click to take it away as a picture.

use leptos::prelude::*;

use crate::{browser, chart};

/// A drawing that follows its signal, in a place that has its shape from the start. It is our own SVG: numbers and words of
/// ours.
#[component]
pub fn Drawing(
    #[prop(into)] svg: Signal<Option<String>>,
    #[prop(into)] size: Signal<(u32, u32)>,
) -> impl IntoView {
    let shape = move || {
        let (width, height) = size.get();
        format!("{width} / {height}")
    };
    view! {
        <div class="drawing" style:aspect-ratio=shape inner_html=move || svg.get().unwrap_or_default()></div>
    }
}

/// A button that saves the drawing as a picture.
#[component]
pub fn SavePicture(
    name: &'static str,
    #[prop(into)] svg: Signal<Option<String>>,
    #[prop(into)] size: Signal<(u32, u32)>,
) -> impl IntoView {
    let save = move |_| {
        if let Some(svg) = svg.get_untracked() {
            let file = format!("{name}.png");
            browser::download_png(&file, &chart::standing_alone(&svg), size.get_untracked());
        }
    };
    view! {
        <button
            type="button"
            class="plain save-picture screen-only"
            data-testid=format!("picture-{name}")
            disabled=move || svg.with(Option::is_none)
            on:click=save
        >
            "Save picture"
        </button>
    }
}
