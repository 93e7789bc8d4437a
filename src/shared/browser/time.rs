//! Timers and the clock.

use std::cell::Cell;

use js_sys::{Function, Reflect};
use leptos::prelude::{document, window};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

/// Yields to the browser's event loop, in a page or a worker.
pub async fn yield_now() {
    let soon = js_sys::Promise::new(&mut |resolve, _| {
        let timer = Reflect::get(&js_sys::global(), &"setTimeout".into());
        let set = timer.and_then(JsCast::dyn_into::<Function>);
        // Without a timer the work continues in the next microtask anyway.
        let _ = match set {
            Ok(set) => set.call1(&JsValue::NULL, &resolve),
            Err(_) => resolve.call0(&JsValue::NULL),
        };
    });
    // The promise never rejects.
    let _ = JsFuture::from(soon).await;
}

/// Waits until the browser has painted the page; a hidden page is not painted.
pub async fn painted() {
    if document().hidden() {
        return yield_now().await;
    }
    let next = js_sys::Promise::new(&mut |resolve, _| {
        // Without animation frames there is nothing to wait for.
        if window().request_animation_frame(&resolve).is_err() {
            let _ = resolve.call0(&JsValue::NULL);
        }
    });
    // The frame is painted after its callbacks.
    let _ = JsFuture::from(next).await;
    yield_now().await;
}

/// Waits for the module's second part, which is fetched once the first answer is painted and has most other code. Returns
/// that part, for a worker.
pub async fn second_part() -> JsValue {
    let promise = Reflect::get(&js_sys::global(), &"whole".into());
    match promise.and_then(JsCast::dyn_into::<js_sys::Promise>) {
        Ok(promise) => JsFuture::from(promise).await.unwrap_or_default(),
        // The module is not split.
        Err(_) => JsValue::UNDEFINED,
    }
}

/// Fetches the text of a catalogue model's recorded graph from the page's own origin; `None` if that fails.
pub async fn recorded_graph(id: &str) -> Option<String> {
    let ask = Reflect::get(&js_sys::global(), &"recordedGraph".into()).ok()?;
    let promise = ask
        .dyn_into::<Function>()
        .ok()?
        .call1(&JsValue::NULL, &id.into());
    let promise = promise.ok()?.dyn_into::<js_sys::Promise>().ok()?;
    JsFuture::from(promise).await.ok()?.as_string()
}

/// A reusable timer. It has one closure for its whole life: a closure per call would leak until the browser collects it.
pub struct Timer {
    ring: Closure<dyn FnMut()>,
    delay: i32,
    set: Cell<Option<i32>>,
}

impl Timer {
    /// Fires this many milliseconds after it was last set.
    pub fn new(delay: i32, ring: Box<dyn FnMut()>) -> Self {
        Self {
            ring: Closure::wrap(ring),
            delay,
            set: Cell::new(None),
        }
    }

    /// Sets or resets it.
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

/// Milliseconds since an arbitrary origin.
pub fn now() -> f64 {
    js_sys::Date::now()
}

/// The date, such as `2026-01-02`.
pub fn today() -> String {
    let now = js_sys::Date::new_0().to_iso_string();
    now.slice(0, 10).into()
}
