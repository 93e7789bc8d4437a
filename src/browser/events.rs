//! What an event tells: where it happened, and what was typed, pressed or dropped there.

use leptos::prelude::window;
use leptos::reactive::spawn_local;
use leptos::task::tick;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{DragEvent, Element, Event, File, HtmlInputElement, PointerEvent};

/// Where in the listening element's width a pointer is, from 0 to 1.
pub fn across(event: &Event) -> Option<f64> {
    let event: &PointerEvent = event.unchecked_ref();
    let element: Element = event.current_target()?.dyn_into().ok()?;
    let bounds = element.get_bounding_client_rect();
    let share = (f64::from(event.client_x()) - bounds.left()) / bounds.width();
    share.is_finite().then_some(share.clamp(0.0, 1.0))
}

/// An attribute of what a pointer is on; empty where it has none.
pub fn attribute_under(event: &Event, name: &str) -> String {
    let element = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    element
        .and_then(|element| element.get_attribute(name))
        .unwrap_or_default()
}

/// Selects the text of the field that an event is of: what is typed next takes its place.
pub fn select_text(event: &Event) {
    if let Some(field) = field(event) {
        field.select();
    }
}

/// The same, once the field shows what the event made of it.
pub fn select_text_soon(event: &Event) {
    if let Some(field) = field(event) {
        spawn_local(async move {
            // Before the next key: the text of somebody who types on at once replaces the name.
            tick().await;
            field.select();
        });
    }
}

fn field(event: &Event) -> Option<HtmlInputElement> {
    event.target()?.dyn_into().ok()
}

/// Whether the folded part that an event is of is open now.
pub fn is_open(event: &Event) -> bool {
    let part = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    part.is_some_and(|part| part.has_attribute("open"))
}

/// The file that was chosen in a file field; the field forgets it, so that it can be chosen again.
pub fn chosen_file(event: &Event) -> Option<File> {
    let field: HtmlInputElement = event.target()?.dyn_into().ok()?;
    let file = field.files()?.get(0);
    field.set_value("");
    file
}

/// Hears of files that are dropped anywhere on the page.
pub fn on_drop(hear: impl Fn(File) + 'static) {
    let allow = |event: DragEvent| event.prevent_default();
    let dropped = move |event: DragEvent| {
        event.prevent_default();
        let files = event.data_transfer().and_then(|data| data.files());
        files
            .and_then(|files| files.get(0))
            .into_iter()
            .for_each(&hear);
    };
    let listen = |name: &str, heard: Closure<dyn Fn(DragEvent)>| {
        let heard = heard.into_js_value().unchecked_into();
        // A window that takes no listeners takes no files.
        let _ = window().add_event_listener_with_callback(name, &heard);
    };
    listen("dragover", Closure::new(allow));
    listen("drop", Closure::new(dropped));
}

/// Whether an event happened in a field, which has undo and keys of its own.
pub fn in_field(event: &Event) -> bool {
    let target = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    target.is_some_and(|element| {
        matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT")
    })
}
