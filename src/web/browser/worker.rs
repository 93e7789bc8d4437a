//! The worker: a second copy of this module off the page's thread, which hears and says text.

use std::cell::RefCell;

use js_sys::{Function, Object, Reflect};
use leptos::prelude::document;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent, Url, Worker, WorkerOptions, WorkerType};

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

/// Starts a worker on this page's own module, both of its parts, and hears what it says. A browser that refuses leaves the
/// page without.
pub fn start_worker(later: &JsValue, hear: impl Fn(String) + 'static) {
    // As for a download: a step that fails leaves things as they are.
    let _ = try_start_worker(later, hear);
}

fn try_start_worker(later: &JsValue, hear: impl Fn(String) + 'static) -> Result<(), JsValue> {
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
    Reflect::set(&start, &"later".into(), later)?;
    worker.post_message(&start)
}

/// Asks the worker; `false` where there is none that listens.
pub fn request(text: &str) -> bool {
    let send = |worker: &Worker| worker.post_message(&text.into()).is_ok();
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
