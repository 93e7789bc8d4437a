//! Rendering of panels after the first answer.

use leptos::prelude::*;

use crate::shared::browser;

/// Renders the panels below the answer one per event-loop turn, so that input is never blocked for long.
#[derive(Clone, Copy)]
pub struct PanelQueue {
    drawn: RwSignal<usize>,
    /// The number of panels.
    all: StoredValue<usize>,
}

impl PanelQueue {
    /// Starts once the answer has been painted.
    pub fn begin() -> Self {
        let queue = Self {
            drawn: RwSignal::new(0),
            all: StoredValue::new(0),
        };
        leptos::reactive::spawn_local(async move {
            browser::painted().await;
            browser::second_part().await;
            let mut drawn = 0;
            while queue.all.try_get_value().is_some_and(|all| drawn != all) {
                drawn += 1;
                queue.drawn.try_set(drawn);
                browser::yield_now().await;
            }
        });
        queue
    }

    /// The position of the next panel in the queue.
    fn take(self) -> usize {
        let position = self.all.get_value();
        self.all.set_value(position + 1);
        position
    }
}

/// A panel that is rendered after the answer, when its turn comes.
#[component]
pub fn Later(children: ChildrenFn) -> impl IntoView {
    let queue: PanelQueue = expect_context();
    let position = queue.take();
    let is_drawn = move || queue.drawn.get() > position;
    // The slot marks the page as incomplete, for tests and printing.
    view! {
        <Show when=is_drawn fallback=|| view! { <slot></slot> }>
            {children()}
        </Show>
    }
}
