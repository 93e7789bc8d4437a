//! What a browser owns: the document, the address, the clipboard, storage and files.

use std::cell::{Cell, RefCell};

use super::draft::Shown;
use js_sys::{Function, Object, Reflect};
use leptos::prelude::{document, window};
use leptos::reactive::spawn_local;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, BlobPropertyBag, CanvasRenderingContext2d, DedicatedWorkerGlobalScope, DragEvent, Event,
    File, HtmlAnchorElement, HtmlCanvasElement, HtmlElement, HtmlImageElement, HtmlInputElement,
    HtmlSelectElement, KeyboardEvent, MessageEvent, PointerEvent, Storage, Url, Worker,
    WorkerOptions, WorkerType,
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

/// Hands a file that is no text to the person.
pub fn download_bytes(name: &str, kind: &str, contents: &[u8]) {
    // As for text.
    let _ = try_download_bytes(name, kind, contents);
}

fn try_download_bytes(name: &str, kind: &str, contents: &[u8]) -> Result<(), JsValue> {
    let bytes = js_sys::Uint8Array::new_from_slice(contents);
    let parts = js_sys::Array::of1(&bytes);
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_u8_array_sequence_and_options(&parts, &options)?;
    let url = Url::create_object_url_with_blob(&blob)?;
    save(name, &url)?;
    Url::revoke_object_url(&url)
}

fn try_download(name: &str, kind: &str, contents: &str) -> Result<(), JsValue> {
    let url = blob_url(contents, kind)?;
    save(name, &url)?;
    Url::revoke_object_url(&url)
}

fn blob_url(contents: &str, kind: &str) -> Result<String, JsValue> {
    let parts = js_sys::Array::of1(&JsValue::from_str(contents));
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&parts, &options)?;
    Url::create_object_url_with_blob(&blob)
}

fn save(name: &str, address: &str) -> Result<(), JsValue> {
    let link: HtmlAnchorElement = document().create_element("a")?.dyn_into()?;
    link.set_href(address);
    link.set_download(name);
    link.click();
    Ok(())
}

/// Hands a picture of a drawing to the person, twice as large as it is shown, for sharp screens and paper.
pub fn download_png(name: &str, svg: &str, size: (u32, u32)) {
    let (name, svg) = (name.to_string(), svg.to_string());
    // As for a file.
    spawn_local(async move {
        let _ = try_download_png(&name, &svg, size).await;
    });
}

async fn try_download_png(
    name: &str,
    svg: &str,
    (width, height): (u32, u32),
) -> Result<(), JsValue> {
    let url = blob_url(svg, "image/svg+xml")?;
    let image = HtmlImageElement::new()?;
    image.set_src(&url);
    let decoded = JsFuture::from(image.decode()).await;
    Url::revoke_object_url(&url)?;
    decoded?;
    let canvas: HtmlCanvasElement = document().create_element("canvas")?.dyn_into()?;
    canvas.set_width(2 * width);
    canvas.set_height(2 * height);
    let Some(paper) = canvas.get_context("2d")? else {
        return Ok(());
    };
    let paper: CanvasRenderingContext2d = paper.dyn_into()?;
    let (across, down) = (f64::from(2 * width), f64::from(2 * height));
    paper.draw_image_with_html_image_element_and_dw_and_dh(&image, 0.0, 0.0, across, down)?;
    save(name, &canvas.to_data_url()?)
}

/// Small settings of the page itself; absent where storage is blocked.
pub fn stored(key: &str) -> Option<String> {
    storage()?.get_item(key).ok()?
}

/// Keeps a small setting; `false` where the browser refuses.
pub fn store(key: &str, value: &str) -> bool {
    storage().is_some_and(|it| it.set_item(key, value).is_ok())
}

/// The same for this tab alone.
pub fn stored_in_tab(key: &str) -> Option<String> {
    tab_storage()?.get_item(key).ok()?
}

pub fn store_in_tab(key: &str, value: &str) {
    if let Some(storage) = tab_storage() {
        // A tab without storage still has its address.
        let _ = storage.set_item(key, value);
    }
}

fn tab_storage() -> Option<Storage> {
    window().session_storage().ok().flatten()
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
pub fn across(event: &Event) -> Option<f64> {
    let event: &PointerEvent = event.unchecked_ref();
    let element: web_sys::Element = event.current_target()?.dyn_into().ok()?;
    let bounds = element.get_bounding_client_rect();
    let share = (f64::from(event.client_x()) - bounds.left()) / bounds.width();
    share.is_finite().then_some(share.clamp(0.0, 1.0))
}

/// An attribute of what a pointer is on; empty where it has none.
pub fn attribute_under(event: &Event, name: &str) -> String {
    let element = event
        .target()
        .and_then(|it| it.dyn_into::<web_sys::Element>().ok());
    element
        .and_then(|it| it.get_attribute(name))
        .unwrap_or_default()
}

/// The same of what lies around it.
pub fn attribute_around(event: &Event, name: &str) -> String {
    let element = event
        .target()
        .and_then(|it| it.dyn_into::<web_sys::Element>().ok());
    // An attribute's name is a selector.
    let holder = element.and_then(|it| it.closest(&format!("[{name}]")).ok().flatten());
    holder
        .and_then(|it| it.get_attribute(name))
        .unwrap_or_default()
}

/// Gives the class to those elements whose attribute has the value, and takes it from the others.
pub fn mark_only(selector: &str, attribute: &str, value: &str, class: &str) {
    for it in all(selector) {
        let is_meant = it.get_attribute(attribute).as_deref() == Some(value);
        // A class name without spaces is never refused.
        let _ = it.class_list().toggle_with_force(class, is_meant);
    }
}

/// Selects the element of that id, and no other that the selector finds.
pub fn select_only(selector: &str, id: &str) {
    for it in all(selector) {
        // An attribute of that name is never refused.
        let _ = it.set_attribute(
            "aria-selected",
            if it.id() == id { "true" } else { "false" },
        );
    }
}

/// What the field that an event is of holds; a box that can be ticked holds `on` or `off`.
pub fn value_under(event: &Event) -> String {
    let target = event.target();
    let field = target
        .as_ref()
        .and_then(|it| it.dyn_ref::<HtmlInputElement>());
    match field.filter(|it| it.type_() == "checkbox") {
        Some(it) if it.checked() => "on".into(),
        Some(_) => "off".into(),
        None => leptos::prelude::event_target_value(event),
    }
}

/// The key that an event of the keyboard is of.
pub fn key(event: &Event) -> String {
    event.unchecked_ref::<KeyboardEvent>().key()
}

/// Puts a value into a field of any kind.
pub fn set_value(field: &web_sys::Element, value: &str) {
    // What has no value ignores it.
    let _ = Reflect::set(field, &"value".into(), &value.into());
}

/// All elements that the selector finds.
fn all(selector: &str) -> impl Iterator<Item = web_sys::Element> {
    let found = document().query_selector_all(selector).ok();
    let count = found.as_ref().map_or(0, web_sys::NodeList::length);
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

/// Puts into a field what it shows; the field that is being typed in holds that already.
pub fn show_field(path: &str, shown: &Shown) {
    let found = |id: &str| document().get_element_by_id(id);
    let Some(control) = found(path) else {
        return;
    };
    let problem = shown.problem.as_deref();
    if let Some(hint) = found(&format!("{path}.hint")) {
        hint.set_text_content(problem);
    }
    // A selector of ours is never refused, and an attribute's name neither.
    if let Ok(Some(field)) = control.closest(".field") {
        let _ = field.toggle_attribute_with_force("hidden", !shown.applies);
        if let Ok(Some(mark)) = field.query_selector(".changed") {
            let _ = mark.toggle_attribute_with_force("hidden", !shown.changed);
        }
    }
    if let Some(input) = control.dyn_ref::<HtmlInputElement>() {
        let _ = control.set_attribute(
            "aria-invalid",
            if problem.is_some() { "true" } else { "false" },
        );
        if input.type_() == "checkbox" {
            input.set_checked(shown.text == "on");
        } else if !control.has_attribute("role") && input.value() != shown.text {
            // A list that searches shows names of its own.
            input.set_value(&shown.text);
        }
    } else if let Some(select) = control.dyn_ref::<HtmlSelectElement>() {
        select.set_value(&shown.text);
    }
}

/// Gives each element the text that belongs to its id.
pub fn set_texts(selector: &str, text: impl Fn(&str) -> String) {
    for it in all(selector) {
        it.set_text_content(Some(&text(&it.id())));
    }
}

/// The window's width in steps, so that a drawing is made anew only now and then.
pub fn width() -> u32 {
    const STEP: f64 = 40.0;
    let width = window().inner_width().ok().and_then(|it| it.as_f64());
    ((width.unwrap_or(1280.0) / STEP).floor() * STEP) as u32
}

/// Whether the folded part that an event is of is open now.
pub fn is_open(event: &Event) -> bool {
    let part = event
        .target()
        .and_then(|it| it.dyn_into::<web_sys::Element>().ok());
    part.is_some_and(|it| it.has_attribute("open"))
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
        let files = event.data_transfer().and_then(|it| it.files());
        files.and_then(|it| it.get(0)).into_iter().for_each(&hear);
    };
    let listen = |name: &str, heard: Closure<dyn Fn(DragEvent)>| {
        let heard = heard.into_js_value().unchecked_into();
        // A window that takes no listeners takes no files.
        let _ = window().add_event_listener_with_callback(name, &heard);
    };
    listen("dragover", Closure::new(allow));
    listen("drop", Closure::new(dropped));
}

/// Reads a file of at most so many bytes as text.
pub fn read_file(file: File, most: usize, then: impl FnOnce(Option<String>) + 'static) {
    if file.size() > most as f64 {
        then(None);
        return;
    }
    spawn_local(async move {
        let read = JsFuture::from(file.text()).await;
        then(read.ok().and_then(|it| it.as_string()));
    });
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

/// The same, once the page has been drawn anew.
pub fn focus_soon(selector: String) {
    spawn_local(async move {
        breathe().await;
        focus(&selector);
    });
}

/// Keeps the keyboard where it is in a part that is drawn anew; its element is known by its id.
pub fn keep_focus(part: &str) {
    let active = document().active_element();
    let inside = active.filter(|it| matches!(it.closest(part), Ok(Some(_))));
    if let Some(id) = inside.map(|it| it.id()) {
        spawn_local(async move {
            breathe().await;
            let now = document().active_element();
            // Anything but the whole page has been chosen meanwhile.
            if now.is_none_or(|it| it.tag_name() == "BODY") {
                focus(&format!("[id=\"{id}\"]"));
            }
        });
    }
}

/// Writes on the button that was pressed.
pub fn write_on(event: &Event, text: &str) {
    if let Some(button) = pressed(event) {
        button.set_text_content(Some(text));
    }
}

fn pressed(event: &Event) -> Option<web_sys::Element> {
    let element = event.target()?.dyn_into::<web_sys::Element>().ok()?;
    element.closest("button").ok()?
}

/// Lets the browser draw and take input before the work goes on; a page and a worker both have this timer.
pub async fn breathe() {
    let soon = js_sys::Promise::new(&mut |resolve, _| {
        let timer = Reflect::get(&js_sys::global(), &"setTimeout".into());
        let set = timer.and_then(JsCast::dyn_into::<Function>);
        // Without a timer the work goes on at the next turn anyway.
        let _ = match set {
            Ok(set) => set.call1(&JsValue::NULL, &resolve),
            Err(_) => resolve.call0(&JsValue::NULL),
        };
    });
    // The promise has no way to fail.
    let _ = JsFuture::from(soon).await;
}

/// A timer that can be set again and again. It has one listener for as long as it lives: a listener for each time would
/// stay, with all that it holds, until the browser cleans up.
pub struct Timer {
    ring: Closure<dyn FnMut()>,
    delay: i32,
    set: Cell<Option<i32>>,
}

impl Timer {
    /// Rings so many milliseconds after it was set last.
    pub fn new(delay: i32, ring: Box<dyn FnMut()>) -> Self {
        Self {
            ring: Closure::wrap(ring),
            delay,
            set: Cell::new(None),
        }
    }

    /// Sets it, or sets it anew.
    pub fn set(&self) {
        self.stop();
        let ring = self.ring.as_ref().unchecked_ref();
        let set = window().set_timeout_with_callback_and_timeout_and_arguments_0(ring, self.delay);
        self.set.set(set.ok());
    }

    fn stop(&self) {
        if let Some(set) = self.set.take() {
            window().clear_timeout_with_handle(set);
        }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Milliseconds since some moment.
pub fn now() -> f64 {
    js_sys::Date::now()
}

/// The day, such as `2026-01-02`.
pub fn today() -> String {
    let now = js_sys::Date::new_0().to_iso_string();
    now.slice(0, 10).into()
}

/// Whether this is a worker's copy of the module, which has no page.
pub fn in_worker() -> bool {
    web_sys::window().is_none()
}

/// In a worker: hears requests, and says that it does.
pub fn on_request(hear: impl Fn(String) + 'static) {
    let Ok(scope) = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>() else {
        return;
    };
    scope.set_onmessage(Some(&listener(hear)));
    answer(READY);
}

/// In a worker: says something to the page.
pub fn answer(text: &str) {
    if let Ok(scope) = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>() {
        // A page that is gone needs no answer.
        let _ = scope.post_message(&text.into());
    }
}

/// What a worker says when it has started.
const READY: &str = "";

thread_local! {
    /// The worker, once it has said that it is ready.
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Starts a worker on this page's own module and hears what it says. A browser that refuses leaves the page without.
pub fn start_worker(hear: impl Fn(String) + 'static) {
    // As for a download: a step that fails leaves things as they are.
    let _ = try_start_worker(hear);
}

fn try_start_worker(hear: impl Fn(String) + 'static) -> Result<(), JsValue> {
    let Some(script) = document().query_selector("script[data-js]")? else {
        return Ok(());
    };
    let base = document().base_uri()?.unwrap_or_default();
    let path = script.get_attribute("data-js").unwrap_or_default();
    let code = Url::new_with_base(&path, &base)?.href();
    let options = WorkerOptions::new();
    options.set_type(WorkerType::Module);
    let place = Url::new_with_base("worker.js", &base)?.href();
    let worker = Worker::new_with_options(&place, &options)?;
    let ready = worker.clone();
    worker.set_onmessage(Some(&listener(move |text| {
        if text == READY {
            WORKER.set(Some(ready.clone()));
        } else {
            hear(text);
        }
    })));
    let start = Object::new();
    Reflect::set(&start, &"js".into(), &code.into())?;
    Reflect::set(&start, &"module".into(), &wasm_bindgen::module())?;
    worker.post_message(&start)
}

/// Asks the worker; `false` where there is none that listens.
pub fn request(text: &str) -> bool {
    let send = |it: &Worker| it.post_message(&text.into()).is_ok();
    WORKER.with_borrow(|worker| worker.as_ref().is_some_and(send))
}

/// A listener for messages of text, which lives as long as the page.
fn listener(hear: impl Fn(String) + 'static) -> Function {
    let heard = move |event: MessageEvent| {
        if let Some(text) = event.data().as_string() {
            hear(text);
        }
    };
    Closure::<dyn Fn(MessageEvent)>::new(heard)
        .into_js_value()
        .unchecked_into()
}

/// Prints, once what paper alone has was written; the browser's own command gives notice by itself.
pub fn print() {
    if let Ok(notice) = Event::new("beforeprint") {
        // Nobody can cancel this notice.
        let _ = window().dispatch_event(&notice);
    }
    spawn_local(async {
        breathe().await;
        // A browser without printing has no other answer than silence.
        let _ = window().print();
    });
}
