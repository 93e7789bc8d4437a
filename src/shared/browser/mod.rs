//! Browser APIs: the document, the address, storage, the window; the submodules have the rest.

mod elements;
mod events;
mod files;
mod time;
mod worker;

pub use elements::*;
pub use events::*;
pub use files::*;
pub use time::*;
pub use worker::*;

use leptos::prelude::{document, window};
use leptos::reactive::spawn_local;
use wasm_bindgen::{JsCast, JsValue};
pub use web_sys::File;
use web_sys::{Event, HtmlElement, Storage};

/// Shows a panic, which ends the program, on the page and in the console.
pub fn report_panics() {
    std::panic::set_hook(Box::new(|info| {
        console_error_panic_hook::hook(info);
        if let Some(note) = document().get_element_by_id("crashed") {
            // If the note cannot be shown, the console still has the message.
            let _ = note.remove_attribute("hidden");
        }
    }));
}

/// Empties the element with this id and returns it.
pub fn clear(id: &str) -> Option<HtmlElement> {
    let place = document().get_element_by_id(id)?;
    place.set_inner_html("");
    place.dyn_into().ok()
}

/// The address's fragment, without its `#`.
pub fn fragment() -> String {
    let hash = window().location().hash().unwrap_or_default();
    hash.trim_start_matches('#').to_string()
}

/// Sets the fragment without a new history entry.
pub fn replace_fragment(fragment: &str) {
    let address = format!("#{fragment}");
    if let Ok(history) = window().history() {
        // If the browser refuses (too many writes in a row), the old link stays until the next change.
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&address));
    }
}

/// The whole address with this fragment.
pub fn address(fragment: &str) -> String {
    let href = window().location().href().unwrap_or_default();
    let page = href.split('#').next().unwrap_or_default();
    format!("{page}#{fragment}")
}

/// A setting of the page in local storage; `None` if storage is blocked.
pub fn stored(key: &str) -> Option<String> {
    storage()?.get_item(key).ok()?
}

/// Stores a setting of the page; `false` if the browser refuses.
pub fn store(key: &str, value: &str) -> bool {
    storage().is_some_and(|storage| storage.set_item(key, value).is_ok())
}

/// The same for this tab only.
pub fn stored_in_tab(key: &str) -> Option<String> {
    tab_storage()?.get_item(key).ok()?
}

pub fn store_in_tab(key: &str, value: &str) {
    if let Some(storage) = tab_storage() {
        // Without storage the tab still has its address.
        let _ = storage.set_item(key, value);
    }
}

fn tab_storage() -> Option<Storage> {
    window().session_storage().ok().flatten()
}

fn storage() -> Option<Storage> {
    window().local_storage().ok().flatten()
}

/// Sets the theme to light or dark; anything else means the system's.
pub fn set_theme(theme: &str) {
    let Some(root) = document().document_element() else {
        return;
    };
    // Both calls only fail for invalid attribute names.
    let _ = match theme {
        "light" | "dark" => root.set_attribute("data-theme", theme),
        _ => root.remove_attribute("data-theme"),
    };
}

/// The window's width, rounded, so that charts are not redrawn on every resize event.
pub fn width() -> u32 {
    const STEP: f64 = 40.0;
    let width = window().inner_width().ok().and_then(|width| width.as_f64());
    ((width.unwrap_or(1280.0) / STEP).floor() * STEP) as u32
}

/// Prints, after rendering the print-only parts; the browser's own print command fires the event itself.
pub fn print() {
    if let Ok(notice) = Event::new("beforeprint") {
        // This event cannot be cancelled.
        let _ = window().dispatch_event(&notice);
    }
    spawn_local(async {
        yield_now().await;
        // A browser without printing does nothing.
        let _ = window().print();
    });
}
