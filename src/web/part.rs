//! Parts of the page: markup as text, whose elements then follow signals and hear events. An element is named by a
//! selector; an empty one names the part's first element. Leptos keeps the signals and owns what follows them; its typed
//! elements would cost the download several times as much.

use leptos::html;
use leptos::prelude::*;
use leptos::reactive::diagnostics::SpecialNonReactiveZone;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use web_sys::{Element, Event};

use super::browser;

/// Elements that are not on the page yet, inside one that never will be.
#[derive(Debug)]
pub struct Part(Option<Element>);

/// What an element shows, read anew whenever a signal in it changes.
type Read = Box<dyn Fn() -> String>;
/// How it is shown; the name is an attribute's or a class's.
type Write = fn(&Element, &str, &str);

impl Part {
    /// Lines are ended and set in for who reads them: none of that space is on the page.
    pub fn new(html: &str) -> Self {
        let home = document().create_element("div").ok();
        if let Some(home) = &home {
            let html: String = html.lines().map(str::trim_start).collect();
            home.set_inner_html(&html);
        }
        Self(home)
    }

    /// Moves its elements into the place of another.
    fn replace(self, place: &Element) {
        if let Some(parent) = place.parent_node() {
            while let Some(node) = self.0.as_ref().and_then(|it| it.first_child()) {
                // A place is always a child of its parent.
                let _ = parent.insert_before(&node, Some(place));
            }
        }
        place.remove();
    }

    /// Moves its elements to the end of another.
    pub fn fill(self, place: &Element) {
        while let Some(node) = self.0.as_ref().and_then(|it| it.first_child()) {
            // Only an element that lies inside this one would be refused.
            let _ = place.append_child(&node);
        }
    }

    /// A place that the markup does not have is a mistake of ours; the browser tests fail at what the console is told.
    fn at(&self, place: &str) -> Option<Element> {
        let home = self.0.as_ref()?;
        let found = match place {
            "" => home.first_element_child(),
            _ => home.query_selector(place).ok().flatten(),
        };
        if found.is_none() {
            leptos::logging::error!("nothing at {place}");
        }
        found
    }

    fn follow(self, place: &str, name: &'static str, read: Read, write: Write) -> Self {
        if let Some(element) = self.at(place) {
            let effect = RenderEffect::new(move |before: Option<String>| {
                let now = read();
                if before.as_ref() != Some(&now) {
                    write(&element, name, &now);
                }
                now
            });
            // It lives as long as what owns the part.
            StoredValue::new_local(effect);
        }
        self
    }

    /// The part of that name, in the place of its slot.
    pub fn put(self, name: &str, part: Self) -> Self {
        if let Some(slot) = self.slot(name) {
            part.replace(&slot);
        }
        self
    }

    fn slot(&self, name: &str) -> Option<Element> {
        self.at(&format!("slot[name={name}]"))
    }

    /// Text that follows what it reads.
    pub fn text(self, place: &str, read: impl Fn() -> String + 'static) -> Self {
        self.follow(place, "", Box::new(read), |it, _, text| {
            it.set_text_content(Some(text));
        })
    }

    /// Markup that follows what it reads.
    pub fn html(self, place: &str, read: impl Fn() -> String + 'static) -> Self {
        self.follow(place, "", Box::new(read), |it, _, html| {
            it.set_inner_html(html);
        })
    }

    /// An attribute that follows what it reads.
    pub fn attribute(
        self,
        place: &str,
        name: &'static str,
        read: impl Fn() -> String + 'static,
    ) -> Self {
        self.follow(place, name, Box::new(read), |it, name, value| {
            // A name of ours is never refused; nor is it in what follows.
            let _ = it.set_attribute(name, value);
        })
    }

    /// What a field holds; what is typed there stays, for what is read has heard of it.
    pub fn value(self, place: &str, read: impl Fn() -> String + 'static) -> Self {
        self.follow(place, "", Box::new(read), |it, _, value| {
            browser::set_value(it, value);
        })
    }

    /// An attribute that is there or not, such as `hidden`.
    pub fn flag(self, place: &str, name: &'static str, read: impl Fn() -> bool + 'static) -> Self {
        self.follow(place, name, words(Box::new(read)), |it, name, on| {
            let _ = it.toggle_attribute_with_force(name, on == ON);
        })
    }

    /// A class that is there or not.
    pub fn class(self, place: &str, name: &'static str, read: impl Fn() -> bool + 'static) -> Self {
        self.follow(place, name, words(Box::new(read)), |it, name, on| {
            let _ = it.class_list().toggle_with_force(name, on == ON);
        })
    }

    /// A part that is made anew whenever what is read on the way changes.
    pub fn shows(self, place: &str, make: impl Fn() -> Option<Self> + 'static) -> Self {
        if let Some(element) = self.at(place) {
            let make: Box<dyn Fn() -> Option<Self>> = Box::new(make);
            let effect = RenderEffect::new(move |_: Option<()>| {
                element.set_inner_html("");
                if let Some(part) = make() {
                    part.fill(&element);
                }
            });
            StoredValue::new_local(effect);
        }
        self
    }

    /// Hears an event for as long as what owns the part lives.
    pub fn on(self, place: &str, event: &'static str, hear: impl Fn(Event) + 'static) -> Self {
        let hear: Box<dyn Fn(Event)> = Box::new(hear);
        if let Some(element) = self.at(place) {
            StoredValue::new_local(Listener::new(element, event, hear));
        }
        self
    }

    /// Tells a signal whether the folded element there is open.
    pub fn tells_open(self, place: &str, open: RwSignal<bool>) -> Self {
        self.on(place, "toggle", move |event| {
            let now = browser::is_open(&event);
            if open.get_untracked() != now {
                open.set(now);
            }
        })
    }
}

/// A part among components: its elements take this one's place as soon as that is on the page.
#[component]
pub fn Hosted(part: Part) -> impl IntoView {
    let place = NodeRef::<html::Div>::new();
    let part = StoredValue::new_local(Some(part));
    Effect::new(move |_| {
        if let Some(place) = place.get()
            && let Some(part) = part.try_update_value(Option::take).flatten()
        {
            part.replace(&place);
        }
    });
    view! { <div node_ref=place></div> }
}

const ON: &str = "true";

fn words(read: Box<dyn Fn() -> bool>) -> Read {
    Box::new(move || if read() { ON } else { "" }.into())
}

/// An event's listener, which goes with what owns it.
struct Listener {
    element: Element,
    event: &'static str,
    heard: Closure<dyn Fn(Event)>,
}

impl Listener {
    fn new(element: Element, event: &'static str, hear: Box<dyn Fn(Event)>) -> Self {
        let heard = Closure::new(move |event| {
            let _zone = SpecialNonReactiveZone::enter();
            hear(event);
        });
        // An element takes any listener.
        let _ = element.add_event_listener_with_callback(event, heard.as_ref().unchecked_ref());
        Self {
            element,
            event,
            heard,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let heard = self.heard.as_ref().unchecked_ref();
        // As above.
        let _ = self
            .element
            .remove_event_listener_with_callback(self.event, heard);
    }
}
