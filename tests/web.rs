//! The page in a real browser: what needs a document, and no server.
#![cfg(target_arch = "wasm32")]

use leptos::prelude::document;
use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

/// The page takes the place of the greeting that stands in `index.html` until WebAssembly arrives.
#[wasm_bindgen_test]
fn the_page_replaces_the_greeting() {
    let home = document().create_element("main").unwrap();
    home.set_id("app");
    home.set_inner_html(r#"<p id="loading">Loading…</p>"#);
    document().body().unwrap().append_child(&home).unwrap();

    headroom::web::start();

    assert!(document().get_element_by_id("loading").is_none());
    let heading = home.query_selector("h1").unwrap().unwrap();
    assert!(heading.text_content().unwrap().contains("Headroom"));
    home.remove();
}
