//! What a browser owns: the document, and later the clipboard, storage and files.

use leptos::prelude::document;
use wasm_bindgen::JsCast;
use web_sys::HtmlElement;

/// A panic ends the program; say so on the page as well as in the console.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        if let Some(note) = document().get_element_by_id("crashed") {
            // A note that cannot be shown leaves the console's message.
            let _ = note.remove_attribute("hidden");
        }
    }));
}

/// Empties the element of that id and hands it over.
pub fn clear(id: &str) -> Option<HtmlElement> {
    let place = document().get_element_by_id(id)?;
    place.set_inner_html("");
    place.dyn_into().ok()
}
