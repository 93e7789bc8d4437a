//! A chart with a cursor that follows the pointer, and a slider that moves it by keyboard.

use leptos::ev::{Event, PointerEvent};
use leptos::prelude::*;

use super::Drawing;
use crate::shared::browser;

#[component]
pub fn Scrubber(
    label: &'static str,
    #[prop(into)] svg: Signal<Option<String>>,
    #[prop(into)] size: Signal<(u32, u32)>,
    /// The slider's value and its maximum.
    #[prop(into)]
    value: Signal<u64>,
    #[prop(into)] max: Signal<u64>,
    /// The cursor's position, in percent of the width.
    #[prop(into)]
    cursor: Signal<f64>,
    /// The cursor's position at the slider's first and last value: there its thumb is below the cursor.
    #[prop(into)]
    ends: Signal<(f64, f64)>,
    /// Called with the pointer's position as a share of the width; `None` when it leaves.
    #[prop(into)]
    point: Callback<Option<f64>>,
    #[prop(into)] scrub: Callback<u64>,
    /// The values at the cursor.
    #[prop(into)]
    readout: Signal<Option<String>>,
) -> impl IntoView {
    let moved = move |event: PointerEvent| point.run(browser::across(&event));
    let scrubbed = move |event: Event| {
        if let Ok(value) = event_target_value(&event).parse() {
            scrub.run(value);
        }
    };
    let place = move || format!("{:.3}%", cursor.get());
    // The middle of the thumb is half its width away from the ends of its track.
    let start = move || format!("calc({:.3}% - 0.5rem)", ends.get().0);
    let width = move || {
        let (first, last) = ends.get();
        format!("calc({:.3}% + 1rem)", (last - first).max(0.0))
    };
    view! {
        <div
            class="plot"
            aria-hidden="true"
            on:pointermove=moved
            on:pointerleave=move |_| point.run(None)
        >
            <Drawing svg size/>
            <svg class="overlay">
                <line class="cursor" y1="0" y2="100%" x1=place x2=place></line>
            </svg>
        </div>
        <input
            class="scrubber"
            style:margin-left=start
            style:width=width
            type="range"
            min="0"
            aria-label=label
            max=move || max.get().to_string()
            prop:value=move || value.get().to_string()
            aria-valuetext=move || readout.get()
            on:input=scrubbed
        />
        <figcaption class="readout">{move || readout.get()}</figcaption>
    }
}
