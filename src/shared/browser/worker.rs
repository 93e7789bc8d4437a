//! The worker: a second instance of this module off the page's thread, which exchanges text messages.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Function, Object, Reflect};
use leptos::prelude::document;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent, Url, Worker, WorkerOptions, WorkerType};

/// Whether this is the worker's instance of the module, which has no page.
pub fn in_worker() -> bool {
    web_sys::window().is_none()
}

/// In a worker: listens for requests, and announces that it is ready.
pub fn on_request(hear: impl Fn(String) + 'static) {
    let Ok(scope) = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>() else {
        return;
    };
    scope.set_onmessage(Some(&listener(hear)));
    answer(READY);
}

/// In a worker: sends a message to the page.
pub fn answer(text: &str) {
    if let Ok(scope) = js_sys::global().dyn_into::<DedicatedWorkerGlobalScope>() {
        // A closed page needs no answer.
        let _ = scope.post_message(&text.into());
    }
}

/// The message of a worker that has started.
const READY: &str = "";

/// The state of the worker.
enum WorkerState {
    /// Not ready yet: the queued requests.
    Waiting(Vec<String>),
    Worker(Worker),
    /// The browser cannot start one.
    Unavailable,
}

thread_local! {
    static STATE: RefCell<WorkerState> = const { RefCell::new(WorkerState::Waiting(Vec::new())) };
}

/// Starts a worker on this page's own module, both of its parts, and calls `hear` with its messages. If the browser
/// refuses, `refused` gets the requests queued so far.
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

/// There will be no worker: queued requests are handled otherwise. A worker that has started stays, whatever errors it has.
fn give_up(refused: &dyn Fn(String)) {
    let requests = STATE.with_borrow_mut(|hearer| match hearer {
        WorkerState::Waiting(requests) => {
            let requests = std::mem::take(requests);
            *hearer = WorkerState::Unavailable;
            requests
        }
        WorkerState::Worker(_) | WorkerState::Unavailable => Vec::new(),
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
            let before = STATE.replace(WorkerState::Worker(ready.clone()));
            if let WorkerState::Waiting(requests) = before {
                for text in &requests {
                    request(text);
                }
            }
        } else {
            hear(text);
        }
    })));
    // A script that cannot be loaded fires an error event later.
    let failed = Closure::<dyn Fn()>::new(move || give_up(&*refused));
    worker.set_onerror(Some(failed.into_js_value().unchecked_ref()));
    let start = Object::new();
    Reflect::set(&start, &"js".into(), &code.into())?;
    Reflect::set(&start, &"module".into(), &wasm_bindgen::module())?;
    Reflect::set(&start, &"later".into(), later)?;
    worker.post_message(&start)
}

/// Sends a request to the worker, or queues it until it is ready; `false` if there is none.
pub fn request(text: &str) -> bool {
    STATE.with_borrow_mut(|hearer| match hearer {
        WorkerState::Waiting(requests) => {
            requests.push(text.into());
            true
        }
        WorkerState::Worker(worker) => worker.post_message(&text.into()).is_ok(),
        WorkerState::Unavailable => false,
    })
}

/// A listener for text messages that lives as long as the page.
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
