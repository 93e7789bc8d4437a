//! What a browser owns: the document, the address, the clipboard, storage and files.

use leptos::prelude::{document, window};
use leptos::reactive::spawn_local;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, BlobPropertyBag, Event, HtmlAnchorElement, HtmlElement, PointerEvent, Storage, Url,
};

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

/// The address's fragment, without its `#`.
pub fn fragment() -> String {
    let hash = window().location().hash().unwrap_or_default();
    hash.trim_start_matches('#').to_string()
}

/// Writes the fragment without a new entry in the browser's history.
pub fn replace_fragment(fragment: &str) {
    let address = format!("#{fragment}");
    if let Ok(history) = window().history() {
        // A browser that refuses (too many writes in a row) keeps the older link until the next change.
        let _ = history.replace_state_with_url(&JsValue::NULL, "", Some(&address));
    }
}

/// The whole address with this fragment.
pub fn address(fragment: &str) -> String {
    let href = window().location().href().unwrap_or_default();
    let page = href.split('#').next().unwrap_or_default();
    format!("{page}#{fragment}")
}

/// Puts text on the clipboard, then says whether that worked.
pub fn copy(text: &str, done: impl FnOnce(bool) + 'static) {
    let promise = window().navigator().clipboard().write_text(text);
    spawn_local(async move { done(JsFuture::from(promise).await.is_ok()) });
}

/// Hands a file to the person.
pub fn download(name: &str, kind: &str, contents: &str) {
    // Each step can only fail where the browser forbids files; then nothing is saved and the browser says so.
    let _ = try_download(name, kind, contents);
}

fn try_download(name: &str, kind: &str, contents: &str) -> Result<(), JsValue> {
    let parts = js_sys::Array::of1(&JsValue::from_str(contents));
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&parts, &options)?;
    let url = Url::create_object_url_with_blob(&blob)?;
    let link: HtmlAnchorElement = document().create_element("a")?.dyn_into()?;
    link.set_href(&url);
    link.set_download(name);
    link.click();
    Url::revoke_object_url(&url)
}

/// Small settings of the page itself; absent where storage is blocked.
pub fn stored(key: &str) -> Option<String> {
    storage()?.get_item(key).ok()?
}

/// Keeps a small setting; `false` where the browser refuses.
pub fn store(key: &str, value: &str) -> bool {
    storage().is_some_and(|it| it.set_item(key, value).is_ok())
}

fn storage() -> Option<Storage> {
    window().local_storage().ok().flatten()
}

/// Chooses light or dark for the whole document; anything else leaves it to the system.
pub fn set_theme(theme: &str) {
    let Some(root) = document().document_element() else {
        return;
    };
    // Both calls only fail for names that are not attribute names.
    let _ = match theme {
        "light" | "dark" => root.set_attribute("data-theme", theme),
        _ => root.remove_attribute("data-theme"),
    };
}

/// Where in the listening element's width a pointer is, from 0 to 1.
pub fn across(event: &PointerEvent) -> Option<f64> {
    let element: web_sys::Element = event.current_target()?.dyn_into().ok()?;
    let bounds = element.get_bounding_client_rect();
    let share = (f64::from(event.client_x()) - bounds.left()) / bounds.width();
    share.is_finite().then_some(share.clamp(0.0, 1.0))
}

/// An attribute of what a pointer is on; empty where it has none.
pub fn attribute_under(event: &PointerEvent, name: &str) -> String {
    let element = event
        .target()
        .and_then(|it| it.dyn_into::<web_sys::Element>().ok());
    element
        .and_then(|it| it.get_attribute(name))
        .unwrap_or_default()
}

/// The window's width in steps, so that a drawing is made anew only now and then.
pub fn width() -> u32 {
    const STEP: f64 = 40.0;
    let width = window().inner_width().ok().and_then(|it| it.as_f64());
    ((width.unwrap_or(1280.0) / STEP).floor() * STEP) as u32
}

/// Whether an event happened in a field, which has undo and keys of its own.
pub fn in_field(event: &Event) -> bool {
    let target = event
        .target()
        .and_then(|it| it.dyn_into::<web_sys::Element>().ok());
    target.is_some_and(|it| matches!(it.tag_name().as_str(), "INPUT" | "TEXTAREA" | "SELECT"))
}

/// Moves the keyboard to the first element that the selector finds.
pub fn focus(selector: &str) {
    let found = document().query_selector(selector).ok().flatten();
    if let Some(element) = found.and_then(|it| it.dyn_into::<HtmlElement>().ok()) {
        // Focus that is refused stays where it was.
        let _ = element.focus();
    }
}

/// Lets the browser draw and take input before the work goes on.
pub async fn breathe() {
    let soon = js_sys::Promise::new(&mut |resolve, _| {
        // Without a timer the work goes on at the next turn anyway.
        let _ = window().set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, 0);
    });
    // The promise has no way to fail.
    let _ = JsFuture::from(soon).await;
}

pub fn print() {
    // A browser without printing has no other answer than silence.
    let _ = window().print();
}
