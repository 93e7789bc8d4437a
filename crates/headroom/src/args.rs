//! The arguments of a command, as they were given.

/// A command's arguments.
pub(super) struct Args {
    /// Arguments that stand without a name, as many as the command has words.
    pub words: Vec<String>,
    /// Options in the order given.
    pub options: Vec<(&'static str, String)>,
    pub json: bool,
}

impl Args {
    /// The last value given for an option.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    /// Every value given for an option.
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

    /// The word at this place, or nothing.
    pub(super) fn word(&self, at: usize) -> &str {
        self.words.get(at).map_or("", String::as_str)
    }
}
