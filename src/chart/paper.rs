//! The SVG surface charts are drawn on, with widths of text computed instead of measured.

use super::labels;
use plotters::prelude::SVGBackend;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

/// Plotters measures text in a browser by adding a styled element to the page, which the page's policy forbids and a
/// worker cannot do; arithmetic gives the same drawing everywhere.
pub struct Paper<'a>(SVGBackend<'a>);

type Error = <SVGBackend<'static> as DrawingBackend>::ErrorType;
type Outcome<T> = Result<T, DrawingErrorKind<Error>>;

impl<'a> Paper<'a> {
    pub fn new(svg: &'a mut String, size: (u32, u32)) -> Self {
        Self(SVGBackend::with_string(svg, size))
    }
}

impl DrawingBackend for Paper<'_> {
    type ErrorType = Error;

    fn estimate_text_size<S: BackendTextStyle>(
        &self,
        text: &str,
        style: &S,
    ) -> Outcome<(u32, u32)> {
        let width = labels::width(text, style.size());
        Ok((width as u32, style.size() as u32))
    }
    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }
    fn ensure_prepared(&mut self) -> Outcome<()> {
        self.0.ensure_prepared()
    }
    fn present(&mut self) -> Outcome<()> {
        self.0.present()
    }
    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> Outcome<()> {
        self.0.draw_pixel(at, colour)
    }
    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Outcome<()> {
        self.0.draw_line(from, to, style)
    }
    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Outcome<()> {
        self.0.draw_rect(from, to, style, fill)
    }
    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Outcome<()> {
        self.0.draw_path(path, style)
    }
    fn draw_circle<S: BackendStyle>(
        &mut self,
        at: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Outcome<()> {
        self.0.draw_circle(at, radius, style, fill)
    }
    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Outcome<()> {
        self.0.fill_polygon(corners, style)
    }
    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> Outcome<()> {
        self.0.draw_text(text, style, at)
    }
}
