//! Long work off the page's thread: a worker runs this same module and gets jobs as text.

mod files;
mod queue;

pub use queue::{JobKind, Reply, Work};

use std::cell::{Cell, RefCell};

use leptos::prelude::*;
// A worker has no Leptos runtime for futures.
use wasm_bindgen_futures::spawn_local;

use crate::shared::browser;
use headroom_scenario::Scenario;
use queue::{JobQueue, request};

/// How long it works before it yields, in milliseconds: less than a frame, because without a worker this runs on the page's
/// thread.
const SLICE: f64 = 10.0;

thread_local! {
    /// All kinds of jobs.
    static KINDS: Cell<&'static [JobKind]> = const { Cell::new(&[]) };
    static QUEUE: RefCell<JobQueue> = RefCell::default();
    static WORKING: RefCell<bool> = const { RefCell::new(false) };
    static HELPERS: RefCell<Vec<Helper>> = const { RefCell::new(Vec::new()) };
}

/// In the worker: handles requests.
pub fn serve(kinds: &'static [JobKind]) {
    KINDS.set(kinds);
    browser::on_request(|request| {
        if !files::receive_file(&request) {
            take(&request, browser::answer);
        }
    });
}

/// In the page: sends the worker the recorded graph of a catalogue's model.
pub fn send_graph(id: &str, text: &str) {
    // Without a worker the page already has it.
    browser::request(&files::graph(id, text));
}

/// In the page: starts the worker, whose replies go to all helpers.
pub fn start(kinds: &'static [JobKind]) {
    KINDS.set(kinds);
    spawn_local(async {
        // The first answer does not need the worker.
        let later = browser::second_part().await;
        let here = |request: String| take(&request, notify_helpers);
        browser::start_worker(&later, |text| notify_helpers(&text), here);
    });
}

/// Passes a reply to all helpers, which filter their own.
fn notify_helpers(text: &str) {
    let helpers = HELPERS.with_borrow(Clone::clone);
    for helper in helpers {
        helper.hear(text);
    }
}

/// Queues a request, and starts working unless it already does.
fn take(request: &str, tell: impl Fn(&str) + 'static) {
    QUEUE.with_borrow_mut(|queue| queue.take(KINDS.get(), request));
    if WORKING.replace(true) {
        return;
    }
    spawn_local(async move {
        loop {
            let end = browser::now() + SLICE;
            let said = QUEUE.with_borrow_mut(|queue| queue.work(|| browser::now() < end));
            let Some(reply) = said else {
                break;
            };
            tell(&reply);
            browser::yield_now().await;
        }
        WORKING.replace(false);
    });
}

/// The page's side of a kind of job: sends requests and holds the latest reply.
#[derive(Clone, Copy, Debug)]
pub struct Helper {
    kind: &'static str,
    number: RwSignal<u32>,
    /// The scenario of the last request.
    pub about: RwSignal<Scenario>,
    pub reply: RwSignal<Reply>,
}

impl Helper {
    pub fn new(kind: &'static str) -> Self {
        let helper = Self {
            kind,
            number: RwSignal::new(0),
            about: RwSignal::new(Scenario::default()),
            reply: RwSignal::default(),
        };
        HELPERS.with_borrow_mut(|all| all.push(helper));
        helper
    }

    /// Sends a request, replacing the previous one.
    pub fn ask(self, scenario: Scenario) {
        self.ask_within(scenario, "");
    }

    /// The same with limits, which the job interprets.
    pub fn ask_within(self, scenario: Scenario, limits: &str) {
        self.send(Some(&scenario), limits);
        self.about.set(scenario);
        self.reply.set(Reply::default());
    }

    /// Cancels the request; the result so far stays.
    pub fn stop(self) {
        self.send(None, "");
        self.reply.update(|reply| reply.done = true);
    }

    fn send(self, scenario: Option<&Scenario>, limits: &str) {
        let Some(number) = self.number.try_update(|number| {
            *number = number.wrapping_add(1);
            *number
        }) else {
            return;
        };
        if let Some(file) = scenario.and_then(files::unknown_recording) {
            browser::request(&file);
        }
        let text = request(self.kind, number, limits, scenario);
        if !browser::request(&text) {
            // Without a worker, run it here; the running job may be another helper's.
            take(&text, notify_helpers);
        }
    }

    fn hear(self, text: &str) {
        let current = |reply: &Reply| {
            reply.kind == self.kind && Some(reply.number) == self.number.try_get_untracked()
        };
        if let Some(reply) = Reply::read(text).filter(current) {
            self.reply.try_set(reply);
        }
    }
}
