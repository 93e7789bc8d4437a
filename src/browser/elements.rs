//! Elements of the page that are found by a selector: what they show, and which of them has the keyboard.

use leptos::prelude::{document, window};
use leptos::reactive::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

use super::breathe;

/// Moves the keyboard to the first element that the selector finds.
pub fn focus(selector: &str) {
    let found = document().query_selector(selector).ok().flatten();
    if let Some(element) = found.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
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

/// The same, where the element that had the keyboard is gone or takes it no longer.
pub fn catch_focus(selector: &'static str) {
    spawn_local(async move {
        breathe().await;
        if document()
            .query_selector(":focus:not(:disabled)")
            .ok()
            .flatten()
            .is_none()
        {
            focus(selector);
        }
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
