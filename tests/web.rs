//! The page in a real browser: what needs a document, and no server.
#![cfg(target_arch = "wasm32")]

use js_sys::Promise;
use leptos::prelude::{document, window};
use leptos::task::tick;
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};
use web_sys::{Element, Event, EventInit, HtmlElement, HtmlInputElement};

wasm_bindgen_test_configure!(run_in_browser);

/// Lets memos, then the effects that follow them, run.
async fn settled() {
    for _ in 0..4 {
        tick().await;
    }
}

/// Lets the browser paint, and run what waits for that.
async fn pause() {
    let later = Promise::new(&mut |resolve, _| {
        window()
            .set_timeout_with_callback_and_timeout_and_arguments_0(&resolve, 10)
            .unwrap();
    });
    JsFuture::from(later).await.unwrap();
}

/// A page of its own, from the default scenario, that goes when the test ends.
struct Page(Element);

impl Page {
    async fn open() -> Self {
        let home = document().create_element("main").unwrap();
        home.set_id("app");
        home.set_inner_html(r#"<p id="loading">Loading…</p>"#);
        document().body().unwrap().append_child(&home).unwrap();
        // What an earlier test left in the address is no part of this one.
        window().location().set_hash("v=1").unwrap();
        headroom_web::start();
        let page = Self(home);
        // The panels beneath the answer come when it has been painted.
        while page.0.query_selector("#answers slot").unwrap().is_some() {
            pause().await;
        }
        page
    }

    fn find(&self, selector: &str) -> Element {
        self.0.query_selector(selector).unwrap().expect(selector)
    }

    fn text(&self, selector: &str) -> String {
        self.find(selector).text_content().unwrap_or_default()
    }

    fn button(&self, name: &str) -> HtmlElement {
        let all = self.0.query_selector_all("button").unwrap();
        (0..all.length())
            .filter_map(|at| all.get(at)?.dyn_into::<HtmlElement>().ok())
            .find(|element| element.text_content().as_deref() == Some(name))
            .expect(name)
    }

    fn bytes(&self) -> u64 {
        let measure = self.find("[data-testid='allocated-bytes']");
        measure
            .get_attribute("data-bytes")
            .unwrap()
            .parse()
            .unwrap()
    }

    /// Types into a field and leaves it.
    async fn enter(&self, path: &str, text: &str) {
        let field: HtmlInputElement = self.field(path);
        field.set_value(text);
        for kind in ["input", "change"] {
            let bubbles = EventInit::new();
            bubbles.set_bubbles(true);
            let event = Event::new_with_event_init_dict(kind, &bubbles).unwrap();
            field.dispatch_event(&event).unwrap();
            settled().await;
        }
    }

    fn field<T: JsCast>(&self, path: &str) -> T {
        self.find(&format!("[name='{path}']"))
            .dyn_into()
            .ok()
            .expect(path)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        self.0.remove();
    }
}

#[wasm_bindgen_test]
async fn the_page_replaces_the_greeting() {
    let page = Page::open().await;
    assert!(document().get_element_by_id("loading").is_none());
    assert_eq!(page.text("h1"), "Headroom");
    assert!(page.text("#verdict").starts_with("Needs "));
}

#[wasm_bindgen_test]
async fn a_changed_field_changes_the_answer_and_undo_takes_it_back() {
    let page = Page::open().await;
    let before = page.bytes();
    page.enter("data.micro_batch", "16").await;
    assert!(page.bytes() > before);
    assert!(page.text(".about").contains("16 × 1024 tokens"));
    page.button("Undo").click();
    settled().await;
    assert_eq!(page.bytes(), before);
    assert_eq!(
        page.field::<HtmlInputElement>("data.micro_batch").value(),
        "8"
    );
}

#[wasm_bindgen_test]
async fn a_refused_text_stays_with_its_hint_and_the_last_answer_stays_greyed() {
    let page = Page::open().await;
    let before = page.bytes();
    page.enter("data.micro_batch", "many").await;
    assert_eq!(page.bytes(), before);
    let field: HtmlInputElement = page.field("data.micro_batch");
    assert_eq!(field.value(), "many");
    assert_eq!(field.get_attribute("aria-invalid").as_deref(), Some("true"));
    assert!(
        page.text("[id='data.micro_batch.hint']")
            .contains("a whole number")
    );
    assert!(page.find(".verdict").class_list().contains("stale"));
    page.enter("data.micro_batch", "8").await;
    assert!(!page.find(".verdict").class_list().contains("stale"));
}

#[wasm_bindgen_test]
async fn a_card_is_found_by_a_part_of_its_name() {
    let page = Page::open().await;
    page.enter("hardware.gpu", "h200 sxm").await;
    assert!(
        page.text(".about").contains("H200"),
        "{}",
        page.text(".about")
    );
}

#[wasm_bindgen_test]
async fn units_switch_everywhere_at_once() {
    let page = Page::open().await;
    page.find("[data-testid='units']")
        .dyn_into::<HtmlElement>()
        .unwrap()
        .click();
    settled().await;
    assert!(page.text("#verdict").contains(" GB "));
    assert!(!page.text(".breakdown").contains("iB"));
}

#[wasm_bindgen_test]
async fn a_part_opens_to_its_tensors() {
    let page = Page::open().await;
    let part = page.find("[data-part='parameters'] button");
    part.dyn_into::<HtmlElement>().unwrap().click();
    settled().await;
    assert!(page.text(".tensors").contains("transformer.wte"));
}

#[wasm_bindgen_test]
async fn a_kept_scenario_is_compared_by_name() {
    let page = Page::open().await;
    page.button("Keep this as A").click();
    page.enter("data.micro_batch", "4").await;
    let said = page.text("[data-testid='compare']");
    assert!(said.contains("Micro-batch") && said.contains('−'), "{said}");
    page.button("Stop comparing").click();
    settled().await;
    let compared = page.0.query_selector("[data-testid='compare']");
    assert!(compared.unwrap().is_none());
}
