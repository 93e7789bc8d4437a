//! Files and the clipboard.

use leptos::prelude::{document, window};
use leptos::reactive::spawn_local;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    Blob, BlobPropertyBag, CanvasRenderingContext2d, File, HtmlAnchorElement, HtmlCanvasElement,
    HtmlImageElement, Url,
};

/// Copies text to the clipboard, then reports whether that worked.
pub fn copy(text: &str, done: impl FnOnce(bool) + 'static) {
    let promise = window().navigator().clipboard().write_text(text);
    spawn_local(async move { done(JsFuture::from(promise).await.is_ok()) });
}

/// Downloads a text file.
pub fn download(name: &str, kind: &str, contents: &str) {
    // A step fails only if the browser forbids downloads, and then it says so itself.
    let _ = try_download(name, kind, contents);
}

/// Downloads a binary file.
pub fn download_bytes(name: &str, kind: &str, contents: &[u8]) {
    // As for text files.
    let _ = try_download_bytes(name, kind, contents);
}

fn try_download_bytes(name: &str, kind: &str, contents: &[u8]) -> Result<(), JsValue> {
    let bytes = js_sys::Uint8Array::new_from_slice(contents);
    let parts = js_sys::Array::of1(&bytes);
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_u8_array_sequence_and_options(&parts, &options)?;
    let url = Url::create_object_url_with_blob(&blob)?;
    save(name, &url)?;
    Url::revoke_object_url(&url)
}

fn try_download(name: &str, kind: &str, contents: &str) -> Result<(), JsValue> {
    let url = blob_url(contents, kind)?;
    save(name, &url)?;
    Url::revoke_object_url(&url)
}

fn blob_url(contents: &str, kind: &str) -> Result<String, JsValue> {
    let parts = js_sys::Array::of1(&JsValue::from_str(contents));
    let options = BlobPropertyBag::new();
    options.set_type(kind);
    let blob = Blob::new_with_str_sequence_and_options(&parts, &options)?;
    Url::create_object_url_with_blob(&blob)
}

fn save(name: &str, address: &str) -> Result<(), JsValue> {
    let link: HtmlAnchorElement = document().create_element("a")?.dyn_into()?;
    link.set_href(address);
    link.set_download(name);
    link.click();
    Ok(())
}

/// Downloads a PNG of a drawing at twice its size, for high-resolution screens and print.
pub fn download_png(name: &str, svg: &str, size: (u32, u32)) {
    let (name, svg) = (name.to_string(), svg.to_string());
    // As for text files.
    spawn_local(async move {
        let _ = try_download_png(&name, &svg, size).await;
    });
}

async fn try_download_png(
    name: &str,
    svg: &str,
    (width, height): (u32, u32),
) -> Result<(), JsValue> {
    let url = blob_url(svg, "image/svg+xml")?;
    let image = HtmlImageElement::new()?;
    image.set_src(&url);
    let decoded = JsFuture::from(image.decode()).await;
    Url::revoke_object_url(&url)?;
    decoded?;
    let canvas: HtmlCanvasElement = document().create_element("canvas")?.dyn_into()?;
    canvas.set_width(2 * width);
    canvas.set_height(2 * height);
    let Some(paper) = canvas.get_context("2d")? else {
        return Ok(());
    };
    let paper: CanvasRenderingContext2d = paper.dyn_into()?;
    let (across, down) = (f64::from(2 * width), f64::from(2 * height));
    paper.draw_image_with_html_image_element_and_dw_and_dh(&image, 0.0, 0.0, across, down)?;
    save(name, &canvas.to_data_url()?)
}

/// Reads a file of at most `most` bytes as text.
pub fn read_file(file: File, most: usize, then: impl FnOnce(Option<String>) + 'static) {
    if file.size() > most as f64 {
        then(None);
        return;
    }
    spawn_local(async move {
        let read = JsFuture::from(file.text()).await;
        then(read.ok().and_then(|text| text.as_string()));
    });
}

/// Reads a file of at most `most` bytes.
pub fn read_bytes(file: File, most: usize, then: impl FnOnce(Option<Vec<u8>>) + 'static) {
    if file.size() > most as f64 {
        then(None);
        return;
    }
    spawn_local(async move {
        let read = JsFuture::from(file.array_buffer()).await;
        then(
            read.ok()
                .map(|buffer| js_sys::Uint8Array::new(&buffer).to_vec()),
        );
    });
}
