//! Long work off the page's own thread: a worker runs this same module and takes jobs as text.

mod desk;
mod handed;

pub use desk::{JobKind, Reply, Work};

use std::cell::{Cell, RefCell};

use leptos::prelude::*;
// A worker has no Leptos to run futures for it.
use wasm_bindgen_futures::spawn_local;

use super::browser;
use desk::{Desk, request};
use headroom_scenario::Scenario;

/// How long it works before it listens again, in milliseconds: less than a frame, for it may have to do on the
/// page's thread where the browser gives it none of its own.
const SLICE: f64 = 10.0;

thread_local! {
    /// All that a worker can be asked for.
    static KINDS: Cell<&'static [JobKind]> = const { Cell::new(&[]) };
    static DESK: RefCell<Desk> = RefCell::default();
    static WORKING: RefCell<bool> = const { RefCell::new(false) };
    static HELPERS: RefCell<Vec<Helper>> = const { RefCell::new(Vec::new()) };
}

/// In the worker: takes requests for as long as it lives.
pub fn serve(kinds: &'static [JobKind]) {
    KINDS.set(kinds);
    browser::on_request(|request| {
        if !handed::taken(&request) {
            take(&request, browser::answer);
        }
    });
}

/// In the page: gives the worker the recorded graph of a catalogue's model.
pub fn bring(id: &str, text: &str) {
    // Without a worker the page's own is enough.
    browser::request(&handed::graph(id, text));
}

/// In the page: starts the worker whose replies all helpers hear.
pub fn start(kinds: &'static [JobKind]) {
    KINDS.set(kinds);
    spawn_local(async {
        // The first answer does without a worker.
        let later = browser::whole().await;
        let here = |request: String| take(&request, tell_helpers);
        browser::start_worker(&later, |text| tell_helpers(&text), here);
    });
}

/// Hands a reply to the page's helpers, of which each takes its own.
fn tell_helpers(text: &str) {
    let helpers = HELPERS.with_borrow(Clone::clone);
    for helper in helpers {
        helper.hear(text);
    }
}

/// Takes a request, and works unless that is going on already.
fn take(request: &str, tell: impl Fn(&str) + 'static) {
    DESK.with_borrow_mut(|desk| desk.take(KINDS.get(), request));
    if WORKING.replace(true) {
        return;
    }
    spawn_local(async move {
        loop {
            let end = browser::now() + SLICE;
            let said = DESK.with_borrow_mut(|desk| desk.work(|| browser::now() < end));
            let Some(reply) = said else {
                break;
            };
            tell(&reply);
            browser::breathe().await;
        }
        WORKING.replace(false);
    });
}

/// The page's side: asks, and holds the latest reply.
#[derive(Clone, Copy, Debug)]
pub struct Helper {
    kind: &'static str,
    number: RwSignal<u32>,
    /// The scenario that was asked about last.
    pub about: RwSignal<Scenario>,
    pub reply: RwSignal<Reply>,
}

impl Helper {
    pub fn new(kind: &'static str) -> Self {
        let it = Self {
            kind,
            number: RwSignal::new(0),
            about: RwSignal::new(Scenario::default()),
            reply: RwSignal::default(),
        };
        HELPERS.with_borrow_mut(|all| all.push(it));
        it
    }

    /// Asks anew; what was asked before is dropped.
    pub fn ask(self, scenario: Scenario) {
        self.ask_within(scenario, "");
    }

    /// The same within limits, which the kind of work reads.
    pub fn ask_within(self, scenario: Scenario, limits: &str) {
        self.send(Some(&scenario), limits);
        self.about.set(scenario);
        self.reply.set(Reply::default());
    }

    /// Ends what was asked; what is known by then stays.
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
        if let Some(file) = scenario.and_then(handed::unknown_recording) {
            browser::request(&file);
        }
        let text = request(self.kind, number, limits, scenario);
        if !browser::request(&text) {
            // Without a worker, here. What is worked on already may be another helper's.
            take(&text, tell_helpers);
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
