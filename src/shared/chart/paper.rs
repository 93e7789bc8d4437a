//! A plotters backend for SVG with computed instead of measured text widths.

use super::labels;
use plotters::prelude::SVGBackend;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

/// In a browser plotters measures text by adding a styled element to the page, which the content security policy forbids
/// and a worker cannot do; computed widths give the same chart everywhere.
pub struct Paper<'a>(SVGBackend<'a>);

type Error = <SVGBackend<'static> as DrawingBackend>::ErrorType;
type DrawResult<T> = Result<T, DrawingErrorKind<Error>>;

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
    ) -> DrawResult<(u32, u32)> {
        let width = labels::width(text, style.size());
        Ok((width as u32, style.size() as u32))
    }
    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }
    fn ensure_prepared(&mut self) -> DrawResult<()> {
        self.0.ensure_prepared()
    }
    fn present(&mut self) -> DrawResult<()> {
        self.0.present()
    }
    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> DrawResult<()> {
        self.0.draw_pixel(at, colour)
    }
    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> DrawResult<()> {
        self.0.draw_line(from, to, style)
    }
    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        fill: bool,
    ) -> DrawResult<()> {
        self.0.draw_rect(from, to, style, fill)
    }
    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> DrawResult<()> {
        self.0.draw_path(path, style)
    }
    fn draw_circle<S: BackendStyle>(
        &mut self,
        at: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> DrawResult<()> {
        self.0.draw_circle(at, radius, style, fill)
    }
    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> DrawResult<()> {
        self.0.fill_polygon(corners, style)
    }
    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        at: BackendCoord,
    ) -> DrawResult<()> {
        self.0.draw_text(text, style, at)
    }
}
