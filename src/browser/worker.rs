//! The worker: a second copy of this module off the page's thread, which hears and says text.

use std::cell::RefCell;
use std::rc::Rc;

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

/// Who hears requests.
enum Hearer {
    /// A worker that has not said yet that it is ready, and what it will be asked then.
    Waiting(Vec<String>),
    Worker(Worker),
    /// The browser gives none.
    Nobody,
}

thread_local! {
    static HEARER: RefCell<Hearer> = const { RefCell::new(Hearer::Waiting(Vec::new())) };
}

/// Starts a worker on this page's own module, both of its parts, and hears what it says. Where the browser refuses, `refused`
/// takes what was asked by then.
pub fn start_worker(
    later: &JsValue,
    hear: impl Fn(String) + 'static,
    refused: impl Fn(String) + 'static,
) {
    let hear = Rc::new(hear);
    let refused = Rc::new(refused);
    if try_start_worker(later, hear, refused.clone()).is_err() {
        give_up(&*refused);
    }
}

/// There will be no worker: what waits for one is done otherwise. One that has started stays, whatever it stumbles over.
fn give_up(refused: &dyn Fn(String)) {
    let requests = HEARER.with_borrow_mut(|hearer| match hearer {
        Hearer::Waiting(requests) => {
            let requests = std::mem::take(requests);
            *hearer = Hearer::Nobody;
            requests
        }
        Hearer::Worker(_) | Hearer::Nobody => Vec::new(),
    });
    requests.into_iter().for_each(refused);
}

fn try_start_worker(
    later: &JsValue,
    hear: Rc<dyn Fn(String)>,
    refused: Rc<dyn Fn(String)>,
) -> Result<(), JsValue> {
    let Some(script) = document().query_selector("script[data-js]")? else {
        return Err(JsValue::NULL);
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
            let before = HEARER.replace(Hearer::Worker(ready.clone()));
            if let Hearer::Waiting(requests) = before {
                for text in &requests {
                    request(text);
                }
            }
        } else {
            hear(text);
        }
    })));
    // A script that cannot be loaded says so later.
    let failed = Closure::<dyn Fn()>::new(move || give_up(&*refused));
    worker.set_onerror(Some(failed.into_js_value().unchecked_ref()));
    let start = Object::new();
    Reflect::set(&start, &"js".into(), &code.into())?;
    Reflect::set(&start, &"module".into(), &wasm_bindgen::module())?;
    Reflect::set(&start, &"later".into(), later)?;
    worker.post_message(&start)
}

/// Asks the worker, or will when it is ready; `false` where there is none.
pub fn request(text: &str) -> bool {
    HEARER.with_borrow_mut(|hearer| match hearer {
        Hearer::Waiting(requests) => {
            requests.push(text.into());
            true
        }
        Hearer::Worker(worker) => worker.post_message(&text.into()).is_ok(),
        Hearer::Nobody => false,
    })
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
