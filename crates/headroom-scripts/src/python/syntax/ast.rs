//! The tree of a module.

use std::rc::Rc;

pub type Name = Rc<str>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    MatMul,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    Unequal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Is,
    IsNot,
    In,
    NotIn,
}

#[derive(Debug)]
pub enum Expr {
    None,
    Ellipsis,
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(Name),
    Format(Vec<Piece>),
    Name(Name),
    Attribute(Box<Expr>, Name),
    Index(Box<Expr>, Box<Expr>),
    Slice(Option<Box<Expr>>, Option<Box<Expr>>, Option<Box<Expr>>),
    Call(Box<Expr>, Vec<Arg>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Set(Vec<Expr>),
    /// A `None` key is `**`.
    Dict(Vec<(Option<Expr>, Expr)>),
    Star(Box<Expr>),
    Not(Box<Expr>),
    Negative(Box<Expr>),
    /// `+x` and `~x`.
    Unary(Box<Expr>),
    Arithmetic(Box<Expr>, Vec<(Op, Expr)>),
    Compare(Box<Expr>, Vec<(Comparison, Expr)>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    /// `then if test else otherwise`.
    Choice(Box<[Expr; 3]>),
    Lambda(Rc<Function>),
    Comprehension(Rc<Comprehension>),
    Walrus(Name, Box<Expr>),
    Yield(Option<Box<Expr>>),
}

#[derive(Debug)]
pub enum Piece {
    Text(Name),
    /// A value and its format, such as `.2f`, `!r` or `=`.
    Value(Expr, Name),
}

#[derive(Debug)]
pub enum ArgKind {
    Positional,
    Named(Name),
    Spread,
    SpreadNamed,
}

#[derive(Debug)]
pub struct Arg {
    pub kind: ArgKind,
    pub value: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection {
    List,
    Set,
    Dict,
    Generator,
}

#[derive(Debug)]
pub struct Comprehension {
    pub kind: Collection,
    pub element: Expr,
    /// A dictionary's value.
    pub value: Option<Expr>,
    pub clauses: Vec<Clause>,
}

#[derive(Debug)]
pub struct Clause {
    pub target: Expr,
    pub of: Expr,
    pub tests: Vec<Expr>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamKind {
    Plain,
    Named,
    Star,
    StarStar,
}

#[derive(Debug)]
pub struct Param {
    pub name: Name,
    pub kind: ParamKind,
    pub default: Option<Expr>,
    pub annotation: Option<Expr>,
}

#[derive(Debug)]
pub struct Function {
    pub name: Name,
    pub params: Vec<Param>,
    pub body: Vec<Stmt>,
    pub decorators: Vec<Expr>,
}

#[derive(Debug)]
pub struct ClassDef {
    pub name: Name,
    pub bases: Vec<Arg>,
    pub body: Vec<Stmt>,
    pub decorators: Vec<Expr>,
}

#[derive(Debug)]
pub struct Case {
    pub pattern: Expr,
    pub guard: Option<Expr>,
    pub body: Vec<Stmt>,
}

#[derive(Debug)]
pub enum Stmt {
    Expr(Expr),
    Assign(Vec<Expr>, Expr),
    Augmented(Expr, Op, Expr),
    Annotated(Expr, Expr, Option<Expr>),
    Return(Option<Expr>),
    Raise,
    Pass,
    Break,
    Continue,
    Import(Vec<(Name, Option<Name>)>),
    /// Dots in front, module, names; the name `*` is all of them.
    From(usize, Name, Vec<(Name, Option<Name>)>),
    Global(Vec<Name>),
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    While(Expr, Vec<Stmt>),
    For(Expr, Expr, Vec<Stmt>),
    /// Body, the handlers' bodies, `else` and `finally`.
    Try(Vec<Stmt>, Vec<Vec<Stmt>>, Vec<Stmt>),
    With(Vec<(Expr, Option<Expr>)>, Vec<Stmt>),
    Def(Rc<Function>),
    Class(Rc<ClassDef>),
    Match(Expr, Vec<Case>),
    Magic(Name),
}

/// An expression as it is written, shortened: `model.config.use_cache`.
pub fn written(expr: &Expr) -> String {
    let mut text = String::new();
    write(expr, &mut text, 8);
    text
}

fn write(expr: &Expr, text: &mut String, depth: usize) {
    if depth == 0 || text.len() > 120 {
        text.push('…');
        return;
    }
    let depth = depth - 1;
    match expr {
        Expr::None => text.push_str("None"),
        Expr::Bool(value) => text.push_str(if *value { "True" } else { "False" }),
        Expr::Int(value) => text.push_str(&value.to_string()),
        Expr::Float(value) => text.push_str(&value.to_string()),
        Expr::Text(value) => {
            text.push('"');
            text.extend(value.chars().take(60));
            text.push('"');
        }
        Expr::Name(name) => text.push_str(name),
        Expr::Attribute(of, name) => {
            write(of, text, depth);
            text.push('.');
            text.push_str(name);
        }
        Expr::Index(of, at) => {
            write(of, text, depth);
            text.push('[');
            write(at, text, depth);
            text.push(']');
        }
        Expr::Call(of, args) => {
            write(of, text, depth);
            text.push_str(if args.is_empty() { "()" } else { "(…)" });
        }
        Expr::Not(inside) => {
            text.push_str("not ");
            write(inside, text, depth);
        }
        Expr::Negative(inside) => {
            text.push('-');
            write(inside, text, depth);
        }
        Expr::Compare(first, rest) => {
            write(first, text, depth);
            for (comparison, right) in rest {
                text.push_str(match comparison {
                    Comparison::Equal => " == ",
                    Comparison::Unequal => " != ",
                    Comparison::Less => " < ",
                    Comparison::LessEqual => " <= ",
                    Comparison::Greater => " > ",
                    Comparison::GreaterEqual => " >= ",
                    Comparison::Is => " is ",
                    Comparison::IsNot => " is not ",
                    Comparison::In => " in ",
                    Comparison::NotIn => " not in ",
                });
                write(right, text, depth);
            }
        }
        Expr::And(items) => write_all(items, " and ", text, depth),
        Expr::Or(items) => write_all(items, " or ", text, depth),
        Expr::Tuple(items) | Expr::List(items) => {
            text.push('[');
            write_all(items, ", ", text, depth);
            text.push(']');
        }
        _ => text.push('…'),
    }
}

fn write_all(items: &[Expr], between: &str, text: &mut String, depth: usize) {
    for (at, item) in items.iter().enumerate().take(8) {
        if at > 0 {
            text.push_str(between);
        }
        write(item, text, depth);
    }
}
