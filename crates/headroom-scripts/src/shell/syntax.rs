//! The syntax tree of a script.

use std::rc::Rc;

/// A word before its expansion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Raw(pub Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Quoted(String),
    /// `<your_path>`
    Placeholder(String),
    Parameter {
        parameter: Box<Parameter>,
        quoted: bool,
    },
    /// `$((…))`, its inside as a word.
    Arithmetic {
        inside: Raw,
        written: Rc<str>,
        quoted: bool,
    },
    /// `$(…)` and backticks.
    Output {
        list: List,
        written: Rc<str>,
        quoted: bool,
    },
}

/// `$name`, `${name[index]operation}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub name: String,
    pub index: Option<Raw>,
    pub operation: Operation,
    pub written: Rc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    None,
    /// `${#name}`
    Length,
    /// `${!name}`, `${!name[@]}`
    Indirect,
    /// `:-`, `-`, `:=`, `=`, `:+`, `+`, `:?`, `?`
    Default {
        colon: bool,
        kind: u8,
        word: Raw,
    },
    /// `#`, `##`, `%`, `%%`
    Strip {
        end: bool,
        longest: bool,
        pattern: Raw,
    },
    /// `/`, `//`, `/#`, `/%`
    Replace {
        how: u8,
        pattern: Raw,
        by: Raw,
    },
    /// `:offset:length`
    Slice {
        offset: Raw,
        length: Option<Raw>,
    },
    /// `^`, `^^`, `,`, `,,`
    Case {
        upper: bool,
        all: bool,
    },
}

/// How a command follows the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Joint {
    Then,
    And,
    Or,
}

pub(super) type List = Rc<Vec<(Joint, Node)>>;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Simple(Simple),
    Pipe(Vec<Node>),
    Not(Box<Node>),
    If {
        /// Condition, as it is written, and what it guards.
        arms: Vec<(List, Rc<str>, List)>,
        otherwise: Option<List>,
    },
    While {
        until: bool,
        condition: List,
        written: Rc<str>,
        body: List,
    },
    For {
        name: String,
        words: Option<Vec<Raw>>,
        body: List,
    },
    Counted {
        start: Raw,
        condition: Raw,
        step: Raw,
        body: List,
    },
    Case {
        word: Raw,
        arms: Vec<(Vec<Raw>, List)>,
    },
    /// `{ …; }`, with what it is redirected to.
    Group(List, Vec<Redirect>),
    Subshell(List, Vec<Redirect>),
    Function {
        name: String,
        body: List,
    },
    /// `[[ … ]]`
    Test(Vec<Raw>),
    /// `(( … ))`
    Arithmetic(Raw),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Simple {
    pub assignments: Vec<Assignment>,
    pub words: Vec<Raw>,
    /// Of `export`, `declare` and the like.
    pub declared: Vec<Assignment>,
    pub redirects: Vec<Redirect>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub name: String,
    pub index: Option<Raw>,
    pub append: bool,
    pub value: Assigned,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Assigned {
    Text(Raw),
    /// Items, each with a key where it is written `[key]=value`.
    List(Vec<(Option<Raw>, Raw)>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Redirect {
    /// `>` and `>>` of standard output.
    To { file: Raw, append: bool },
    /// `<`
    From(Raw),
    /// A heredoc or `<<<`.
    Text(Raw),
}
