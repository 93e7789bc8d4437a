//! Python's grammar: text to tokens to a tree. A statement that does not parse is left out.

pub mod ast;
mod display;
mod expression;
mod simple;
mod statement;
mod string;
mod token;

use std::rc::Rc;

use token::Token;

/// Deepest nesting of expressions and blocks, so that the stack is bounded.
const DEEPEST: usize = 60;

/// A module's statements and its comments with their lines.
#[derive(Debug, Default)]
pub struct Parsed {
    pub body: Vec<ast::Stmt>,
    pub comments: Vec<(usize, String)>,
    /// Tokens, as a measure of work.
    pub size: usize,
}

pub fn parse(text: &str) -> Parsed {
    let tokens = token::tokens(text);
    let size = tokens.tokens.len();
    let mut parser = Parser::new(&tokens.tokens, 0);
    Parsed {
        body: parser.module(),
        comments: tokens.comments,
        size,
    }
}

/// One expression, such as the value of a command line's option.
pub fn expression(text: &str) -> Option<ast::Expr> {
    let tokens = token::tokens(text);
    let mut parser = Parser::new(&tokens.tokens, 0);
    let expr = parser.tests().ok()?;
    parser.at_end().then_some(expr)
}

/// What does not parse.
struct Broken;

type Parse<T> = Result<T, Broken>;

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn new(tokens: &'a [Token], depth: usize) -> Self {
        Self {
            tokens,
            at: 0,
            depth,
        }
    }

    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn ahead(&self, by: usize) -> Option<&'a Token> {
        self.tokens.get(self.at + by)
    }

    fn at_end(&self) -> bool {
        self.tokens
            .get(self.at..)
            .is_none_or(|rest| rest.iter().all(|token| *token == Token::Newline))
    }

    fn is_op(&self, op: &str) -> bool {
        matches!(self.peek(), Some(Token::Op(found)) if *found == op)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(found)) if **found == *word)
    }

    fn op(&mut self, op: &str) -> bool {
        let is = self.is_op(op);
        self.at += usize::from(is);
        is
    }

    fn word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        self.at += usize::from(is);
        is
    }

    fn need(&mut self, op: &str) -> Parse<()> {
        self.op(op).then_some(()).ok_or(Broken)
    }

    fn name(&mut self) -> Parse<Rc<str>> {
        match self.peek() {
            Some(Token::Name(name)) if !reserved(name) => {
                self.at += 1;
                Ok(name.clone())
            }
            _ => Err(Broken),
        }
    }

    /// Runs a part one level deeper.
    fn deeper<T>(&mut self, part: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= DEEPEST {
            return Err(Broken);
        }
        self.depth += 1;
        let result = part(self);
        self.depth -= 1;
        result
    }
}

/// Words that are no names.
fn reserved(word: &str) -> bool {
    matches!(
        word,
        "and"
            | "as"
            | "assert"
            | "async"
            | "await"
            | "break"
            | "class"
            | "continue"
            | "def"
            | "del"
            | "elif"
            | "else"
            | "except"
            | "finally"
            | "for"
            | "from"
            | "global"
            | "if"
            | "import"
            | "in"
            | "is"
            | "lambda"
            | "nonlocal"
            | "not"
            | "or"
            | "pass"
            | "raise"
            | "return"
            | "try"
            | "while"
            | "with"
            | "yield"
            | "None"
            | "True"
            | "False"
    )
}
