//! What Trunk calls of Lightning CSS: the page is never minified by Trunk.
pub mod stylesheet {
    #[derive(Default)]
    pub struct ParserOptions;

    #[derive(Default)]
    pub struct MinifyOptions;

    #[derive(Default)]
    pub struct PrinterOptions {
        pub minify: bool,
        pub project_root: Option<String>,
    }

    pub struct ToCssResult {
        pub code: String,
    }

    pub struct StyleSheet;

    impl StyleSheet {
        pub fn parse(_: &str, _: ParserOptions) -> Result<Self, String> {
            panic!("this Trunk was built without Lightning CSS: leave `minify` at `never`")
        }

        pub fn minify(&mut self, _: MinifyOptions) -> Result<(), String> {
            Ok(())
        }

        pub fn to_css(&self, _: PrinterOptions) -> Result<ToCssResult, String> {
            Err(String::new())
        }
    }
}
