//! Elements of the page that are found by a selector: what they show, and which of them has the keyboard.

use js_sys::Reflect;
use leptos::prelude::{document, window};
use leptos::reactive::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement, NodeList};

use super::breathe;
/// Puts a value into a field of any kind.
pub fn set_value(field: &Element, value: &str) {
    // What has no value ignores it.
    let _ = Reflect::set(field, &"value".into(), &value.into());
}

/// All elements that the selector finds.
fn all(selector: &str) -> impl Iterator<Item = Element> {
    let found = document().query_selector_all(selector).ok();
    let count = found.as_ref().map_or(0, NodeList::length);
    (0..count).filter_map(move |at| found.as_ref()?.get(at)?.dyn_into().ok())
}

/// Marks the fields whose ids are given as wrong, and no others.
pub fn mark_invalid(selector: &str, ids: &[String]) {
    for it in all(selector) {
        let wrong = ids.contains(&it.id());
        // An attribute of that name is never refused.
        let _ = it.set_attribute("aria-invalid", if wrong { "true" } else { "false" });
    }
}

/// Gives each element the text that belongs to its id.
pub fn set_texts(selector: &str, text: impl Fn(&str) -> String) {
    for it in all(selector) {
        it.set_text_content(Some(&text(&it.id())));
    }
}

/// Moves the keyboard to the first element that the selector finds.
pub fn focus(selector: &str) {
    let found = document().query_selector(selector).ok().flatten();
    if let Some(element) = found.and_then(|it| it.dyn_into::<HtmlElement>().ok()) {
        // Focus that is refused stays where it was.
        let _ = element.focus();
    }
}

/// The same, once the page has been drawn anew.
pub fn focus_soon(selector: String) {
    spawn_local(async move {
        breathe().await;
        focus(&selector);
    });
}

/// Brings the element of that id to the top of what is in view, and gives it the keyboard.
pub fn show(id: &str) {
    let element = document().get_element_by_id(id);
    if let Some(element) = element.and_then(|found| found.dyn_into::<HtmlElement>().ok()) {
        // As above.
        let _ = element.focus();
        element.scroll_into_view();
    }
}

/// Opens the folded element of that id, and shows it.
pub fn unfold(id: &str) {
    if let Some(element) = document().get_element_by_id(id) {
        // An attribute of that name is never refused.
        let _ = element.set_attribute("open", "");
        element.scroll_into_view();
    }
    focus(&format!("[id='{id}'] > summary"));
}

/// Whether the element of that id begins in the upper half of the window, or above it.
pub fn is_above_middle(id: &str) -> bool {
    let height = window()
        .inner_height()
        .ok()
        .and_then(|height| height.as_f64());
    let element = document().get_element_by_id(id);
    element.is_some_and(|element| {
        element.get_bounding_client_rect().top() < height.unwrap_or_default() / 2.0
    })
}
