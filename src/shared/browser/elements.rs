//! Elements of the page by selector or id: focus, scrolling and visibility.

use leptos::prelude::{document, window};
use leptos::reactive::spawn_local;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlElement};

use super::{painted, yield_now};

/// Moves the focus to the first element that matches the selector, and opens the folded parts that it is in.
pub fn focus(selector: &str) {
    let found = document().query_selector(selector).ok().flatten();
    if let Some(element) = found.and_then(|element| element.dyn_into::<HtmlElement>().ok()) {
        open_around(&element);
        // If refused, the focus stays where it was.
        let _ = element.focus();
    }
}

fn open_around(element: &Element) {
    let own = element.matches("summary").unwrap_or_default();
    let around = element.parent_element();
    let mut around = if own {
        around.and_then(|part| part.parent_element())
    } else {
        around
    };
    while let Some(part) = around.and_then(|it| it.closest("details:not([open])").ok().flatten()) {
        // This attribute name is always valid.
        let _ = part.set_attribute("open", "");
        around = part.parent_element();
    }
}

/// The same, once the page has been redrawn.
pub fn focus_soon(selector: String) {
    spawn_local(async move {
        yield_now().await;
        focus(&selector);
    });
}

/// How often it is looked whether the focus was lost: an answer that arrives meanwhile draws the same rows once more.
const LOOKS: usize = 3;

/// The same, if the focused element is gone or no longer focusable.
pub fn catch_focus(selector: &'static str) {
    spawn_local(async move {
        yield_now().await;
        for _ in 0..LOOKS {
            let focused = document().query_selector(":focus:not(:disabled)");
            if focused.ok().flatten().is_none() {
                focus(selector);
            }
            painted().await;
        }
    });
}

/// Scrolls to the element with this id, and focuses it.
pub fn show(id: &str) {
    let element = document().get_element_by_id(id);
    if let Some(element) = element.and_then(|found| found.dyn_into::<HtmlElement>().ok()) {
        // As above.
        let _ = element.focus();
        element.scroll_into_view();
    }
}

/// Opens the `details` element with this id, and shows it.
pub fn unfold(id: &str) {
    if let Some(element) = document().get_element_by_id(id) {
        // This attribute name is always valid.
        let _ = element.set_attribute("open", "");
        element.scroll_into_view();
    }
    focus(&format!("[id='{id}'] > summary"));
}

/// Whether the page is scrolled to its end.
pub fn is_at_end() -> bool {
    let root = document().document_element();
    root.is_some_and(|root| {
        let rest = root.scroll_height() - root.client_height() - root.scroll_top();
        rest <= 2 && root.scroll_top() > 0
    })
}

/// Whether the element with this id has the focus, and begins in sight or at most half a window above.
pub fn is_focused_in_sight(id: &str) -> bool {
    let focused = document().active_element().filter(|it| it.id() == id);
    let height = window().inner_height().ok();
    let height = height
        .and_then(|height| height.as_f64())
        .unwrap_or_default();
    focused.is_some_and(|it| {
        let top = it.get_bounding_client_rect().top();
        (-height / 2.0..height).contains(&top)
    })
}

/// Whether the element with this id begins in the upper half of the window, or above it.
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
