//! What Trunk calls of minify-js: the page is never minified by Trunk.
pub enum TopLevelMode {
    Global,
    Module,
}

#[derive(Default)]
pub struct Session;

impl Session {
    pub fn new() -> Self {
        Self
    }
}

pub fn minify(_: &Session, _: TopLevelMode, _: &[u8], _: &mut Vec<u8>) -> Result<(), String> {
    panic!("this Trunk was built without minify-js: leave `minify` at `never`")
}
