//! What Trunk calls of oxipng: the page is never minified by Trunk.
pub struct Options;

impl Options {
    pub fn from_preset(_: u8) -> Self {
        Self
    }
}

pub fn optimize_from_memory(_: &[u8], _: &Options) -> std::io::Result<Vec<u8>> {
    panic!("this Trunk was built without oxipng: leave `minify` at `never`")
}
