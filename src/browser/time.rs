//! Timers and the clock.

use std::cell::Cell;

use js_sys::{Function, Reflect};
use leptos::prelude::{document, window};
use wasm_bindgen::prelude::Closure;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

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

/// Waits until the browser has painted what is on the page, which it does where somebody looks at it.
pub async fn painted() {
    if document().hidden() {
        return breathe().await;
    }
    let next = js_sys::Promise::new(&mut |resolve, _| {
        // Without frames there is nothing to wait for.
        if window().request_animation_frame(&resolve).is_err() {
            let _ = resolve.call0(&JsValue::NULL);
        }
    });
    // As below: the frame is drawn behind what its notice calls.
    let _ = JsFuture::from(next).await;
    breathe().await;
}

/// Waits for the module's second part, which is fetched when the first answer is painted: what is drawn or worked out
/// from then on may be in there. Gives that part, for a worker.
pub async fn whole() -> JsValue {
    let promise = Reflect::get(&js_sys::global(), &"whole".into());
    match promise.and_then(JsCast::dyn_into::<js_sys::Promise>) {
        Ok(promise) => JsFuture::from(promise).await.unwrap_or_default(),
        // It is in one part.
        Err(_) => JsValue::UNDEFINED,
    }
}

/// The text of a catalogue model's recorded graph, from the page's own address; `None` where it does not come.
pub async fn recorded_graph(id: &str) -> Option<String> {
    let ask = Reflect::get(&js_sys::global(), &"recordedGraph".into()).ok()?;
    let promise = ask
        .dyn_into::<Function>()
        .ok()?
        .call1(&JsValue::NULL, &id.into());
    let promise = promise.ok()?.dyn_into::<js_sys::Promise>().ok()?;
    JsFuture::from(promise).await.ok()?.as_string()
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
