//! Requests to the worker that follow the current scenario.

use leptos::prelude::*;

use crate::shared::preferences::AdvicePreferences;
use crate::shared::session::Session;
use crate::shared::signals::debounced;
use crate::shared::worker::Helper;

/// Sends the worker the current scenario and limits, debounced, while `wanted` is true.
pub fn follow(
    session: Session,
    helper: Helper,
    wanted: impl Fn() -> bool + Copy + 'static,
    limits: impl Fn() -> String + Copy + 'static,
) {
    let ask = move || {
        if untrack(wanted) {
            let scenario = session
                .answer
                .with_untracked(|answer| (*answer.scenario).clone());
            helper.ask_within(scenario, &untrack(limits));
        }
    };
    debounced(250, ask, move |_| {
        let wanted = wanted();
        if wanted {
            session.answer.with(|_| ());
            limits();
        } else {
            helper.stop();
        }
        wanted
    });
}

/// The same with the user's preferences as limits.
pub fn follow_preferences(
    session: Session,
    helper: Helper,
    wanted: impl Fn() -> bool + Copy + 'static,
) {
    let preferences = AdvicePreferences::current();
    follow(session, helper, wanted, move || {
        preferences.limits().write()
    });
}
