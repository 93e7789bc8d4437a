//! Reads events: positions, attributes, text, files.

use leptos::prelude::window;
use leptos::reactive::spawn_local;
use leptos::task::tick;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{
    DragEvent, Element, Event, EventTarget, File, FocusEvent, HtmlInputElement, Node, PointerEvent,
};

/// The pointer's horizontal position in the listening element, from 0 to 1.
pub fn across(event: &Event) -> Option<f64> {
    let event: &PointerEvent = event.unchecked_ref();
    let element: Element = event.current_target()?.dyn_into().ok()?;
    let bounds = element.get_bounding_client_rect();
    let share = (f64::from(event.client_x()) - bounds.left()) / bounds.width();
    share.is_finite().then_some(share.clamp(0.0, 1.0))
}

/// An attribute of the element under the pointer; empty if it has none.
pub fn attribute_under(event: &Event, name: &str) -> String {
    let element = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    element
        .and_then(|element| element.get_attribute(name))
        .unwrap_or_default()
}

/// Selects the text of an event's field, so that typing replaces it.
pub fn select_text(event: &Event) {
    if let Some(field) = field(event) {
        field.select();
    }
}

/// The same, once the field has been updated by the event.
pub fn select_text_soon(event: &Event) {
    if let Some(field) = field(event) {
        spawn_local(async move {
            // Before the next key event, so that fast typing replaces the name, too.
            tick().await;
            field.select();
        });
    }
}

fn field(event: &Event) -> Option<HtmlInputElement> {
    event.target()?.dyn_into().ok()
}

/// Whether the `details` element of an event is open now.
pub fn is_open(event: &Event) -> bool {
    let part = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    part.is_some_and(|part| part.has_attribute("open"))
}

/// Whether the focus goes from the listening element to another part of the page.
pub fn leaves(event: &FocusEvent) -> bool {
    let node = |target: Option<EventTarget>| target?.dyn_into::<Node>().ok();
    let (here, to) = (node(event.current_target()), node(event.related_target()));
    here.zip(to)
        .is_some_and(|(here, to)| !here.contains(Some(&to)))
}

/// The file chosen in a file field, which is cleared so that the same file can be chosen again.
pub fn chosen_file(event: &Event) -> Option<File> {
    let field: HtmlInputElement = event.target()?.dyn_into().ok()?;
    let file = field.files()?.get(0);
    field.set_value("");
    file
}

/// Listens for files dropped anywhere on the page.
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
        // Without a listener, dropping files just does not work.
        let _ = window().add_event_listener_with_callback(name, &heard);
    };
    listen("dragover", Closure::new(allow));
    listen("drop", Closure::new(dropped));
}

/// Whether an event happened in a field, which has its own undo and keys.
pub fn in_field(event: &Event) -> bool {
    let target = event
        .target()
        .and_then(|target| target.dyn_into::<Element>().ok());
    target.is_some_and(|element| {
        matches!(element.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT")
    })
}
