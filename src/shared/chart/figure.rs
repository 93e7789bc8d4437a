//! A chart on the page, and a button that saves it as a picture.

use leptos::prelude::*;

use crate::shared::{browser, chart};

/// A chart that follows its signal, in a box of fixed aspect ratio. The SVG has no foreign content, so `inner_html` is
/// safe.
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
            browser::download_png(&file, &chart::self_contained(&svg), size.get_untracked());
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
