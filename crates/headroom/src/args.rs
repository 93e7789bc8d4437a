//! The parsed arguments of a command.

/// A command's arguments.
pub(super) struct Args {
    /// Positional arguments, as many as the command has.
    pub words: Vec<String>,
    /// Options in order; those of settings are `set`.
    pub options: Vec<(&'static str, String)>,
    pub json: bool,
}

impl Args {
    /// The last value of an option.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// Whether a switch was given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.option(name).is_some()
    }

    /// All values of an option.
    pub(super) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let of_name = move |(given, value): &'a (&'static str, String)| {
            (*given == name).then_some(value.as_str())
        };
        self.options
            .iter()
            .filter_map(of_name)
            .collect::<Vec<_>>()
            .into_iter()
    }

    /// The positional argument at this index, or an empty string.
    pub(super) fn positional(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }
}
