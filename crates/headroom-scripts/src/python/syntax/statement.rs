//! Statements.

use std::rc::Rc;

use super::ast::{ArgKind, Case, ClassDef, Expr, Function, Op, Stmt};
use super::expression::operator;
use super::token::Token;
use super::{Broken, Parse, Parser};

impl Parser<'_> {
    pub fn module(&mut self) -> Vec<Stmt> {
        let mut body = Vec::new();
        while self.peek().is_some() {
            match self.peek() {
                Some(Token::Newline | Token::Indent | Token::Dedent) => self.at += 1,
                _ => self.statement_or_skip(&mut body),
            }
        }
        body
    }

    /// Reads a statement; one that does not parse is passed with its block.
    fn statement_or_skip(&mut self, body: &mut Vec<Stmt>) {
        let start = self.at;
        let length = body.len();
        if self.statement(body).is_err() {
            body.truncate(length);
            self.at = start;
            self.skip();
        }
        if self.at == start {
            self.at += 1;
        }
    }

    fn skip(&mut self) {
        loop {
            match self.peek() {
                None | Some(Token::Dedent) => return,
                Some(Token::Newline) => break,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        if self.peek() != Some(&Token::Indent) {
            return;
        }
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            self.at += 1;
            match token {
                Token::Indent => depth += 1,
                Token::Dedent => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return;
            }
        }
    }

    fn statement(&mut self, body: &mut Vec<Stmt>) -> Parse<()> {
        match self.peek() {
            Some(Token::Magic(line)) => {
                body.push(Stmt::Magic(line.clone()));
                self.at += 1;
                Ok(())
            }
            Some(Token::Name(word)) => match self.compound(word)? {
                Some(statement) => {
                    body.push(statement);
                    Ok(())
                }
                None => self.simple_line(body),
            },
            Some(Token::Op("@")) => {
                body.push(self.decorated()?);
                Ok(())
            }
            _ => self.simple_line(body),
        }
    }

    fn compound(&mut self, word: &str) -> Parse<Option<Stmt>> {
        let statement = match word {
            "if" => self.conditional()?,
            "while" => {
                self.at += 1;
                let test = self.test()?;
                let body = self.block()?;
                self.alternative()?;
                Stmt::While(test, body)
            }
            "for" => self.for_loop()?,
            "try" => self.attempt()?,
            "with" => self.with()?,
            "def" => Stmt::Def(Rc::new(self.function(Vec::new())?)),
            "class" => Stmt::Class(Rc::new(self.class(Vec::new())?)),
            "async" => {
                self.at += 1;
                match self.peek() {
                    Some(Token::Name(word)) if &**word != "async" => return self.compound(word),
                    _ => return Err(Broken),
                }
            }
            "match" => return self.matching(),
            _ => return Ok(None),
        };
        Ok(Some(statement))
    }

    /// Decorators with what they decorate. What does not parse is passed here, since reading the decorators again for each
    /// of them would take the square of their number.
    fn decorated(&mut self) -> Parse<Stmt> {
        let mut decorators = Vec::new();
        while self.op("@") {
            match self.test() {
                Ok(decorator) => decorators.push(decorator),
                Err(Broken) => self.to_line_end(),
            }
            self.to_line_end();
            while matches!(self.peek(), Some(Token::Newline)) {
                self.at += 1;
            }
        }
        self.word("async");
        let start = self.at;
        let statement = if self.is_word("class") {
            self.class(decorators)
                .map(|class| Stmt::Class(Rc::new(class)))
        } else {
            self.function(decorators)
                .map(|function| Stmt::Def(Rc::new(function)))
        };
        if statement.is_err() {
            self.at = start;
            self.skip();
            return Ok(Stmt::Pass);
        }
        statement
    }

    fn function(&mut self, decorators: Vec<Expr>) -> Parse<Function> {
        if !self.word("def") {
            return Err(Broken);
        }
        let name = self.name()?;
        self.type_parameters()?;
        self.need("(")?;
        let params = self.params(")")?;
        if self.op("->") {
            self.test()?;
        }
        Ok(Function {
            name,
            params,
            body: self.block()?,
            decorators,
        })
    }

    fn type_parameters(&mut self) -> Parse<()> {
        if !self.op("[") {
            return Ok(());
        }
        while !self.op("]") {
            if self.peek().is_none_or(|token| *token == Token::Newline) {
                return Err(Broken);
            }
            self.at += 1;
        }
        Ok(())
    }

    fn class(&mut self, decorators: Vec<Expr>) -> Parse<ClassDef> {
        if !self.word("class") {
            return Err(Broken);
        }
        let name = self.name()?;
        self.type_parameters()?;
        let bases = if self.op("(") {
            self.arguments()?
        } else {
            Vec::new()
        };
        Ok(ClassDef {
            name,
            bases: bases
                .into_iter()
                .filter(|arg| matches!(arg.kind, ArgKind::Positional))
                .collect(),
            body: self.block()?,
            decorators,
        })
    }

    fn block(&mut self) -> Parse<Vec<Stmt>> {
        self.need(":")?;
        self.deeper(Self::block_inside)
    }

    fn block_inside(&mut self) -> Parse<Vec<Stmt>> {
        let mut body = Vec::new();
        if self.peek() != Some(&Token::Newline) {
            self.simple_line(&mut body)?;
            return Ok(body);
        }
        self.at += 1;
        while self.peek() == Some(&Token::Newline) {
            self.at += 1;
        }
        if self.peek() != Some(&Token::Indent) {
            // A block of comments alone, as notebooks have them.
            return Ok(body);
        }
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                None => return Ok(body),
                Some(Token::Newline) => self.at += 1,
                Some(Token::Indent) => {
                    self.at += 1;
                    depth += 1;
                }
                Some(Token::Dedent) => {
                    self.at += 1;
                    depth -= 1;
                    if depth == 0 {
                        return Ok(body);
                    }
                }
                Some(_) => self.statement_or_skip(&mut body),
            }
        }
    }

    /// The body of `else:`, where there is one.
    fn alternative(&mut self) -> Parse<Vec<Stmt>> {
        if self.word("else") {
            self.block()
        } else {
            Ok(Vec::new())
        }
    }

    fn conditional(&mut self) -> Parse<Stmt> {
        let mut branches = Vec::new();
        while self.word("if") || (!branches.is_empty() && self.word("elif")) {
            let test = self.test()?;
            branches.push((test, self.block()?));
            if !self.is_word("elif") {
                break;
            }
        }
        Ok(Stmt::If(branches, self.alternative()?))
    }

    fn for_loop(&mut self) -> Parse<Stmt> {
        self.at += 1;
        let target = self.targets()?;
        if !self.word("in") {
            return Err(Broken);
        }
        let of = self.tests()?;
        let body = self.block()?;
        self.alternative()?;
        Ok(Stmt::For(target, of, body))
    }

    fn attempt(&mut self) -> Parse<Stmt> {
        self.at += 1;
        let body = self.block()?;
        let mut handlers = Vec::new();
        while self.word("except") {
            self.op("*");
            if !self.is_op(":") {
                self.tests()?;
                if self.word("as") {
                    self.name()?;
                }
            }
            handlers.push(self.block()?);
        }
        let mut after = self.alternative()?;
        if self.word("finally") {
            after.extend(self.block()?);
        }
        Ok(Stmt::Try(body, handlers, after))
    }

    fn with(&mut self) -> Parse<Stmt> {
        self.at += 1;
        let start = self.at;
        if self.op("(") {
            if let Ok(items) = self.with_items(true)
                && self.is_op(":")
            {
                return Ok(Stmt::With(items, self.block()?));
            }
            self.at = start;
        }
        let items = self.with_items(false)?;
        Ok(Stmt::With(items, self.block()?))
    }

    fn with_items(&mut self, bracketed: bool) -> Parse<Vec<(Expr, Option<Expr>)>> {
        let mut items = Vec::new();
        loop {
            let value = self.test()?;
            let target = self.word("as").then(|| self.test()).transpose()?;
            items.push((value, target));
            let more = self.op(",");
            if bracketed && self.op(")") {
                return Ok(items);
            }
            if !more {
                return if bracketed { Err(Broken) } else { Ok(items) };
            }
        }
    }

    /// `match` is a name in most places.
    fn matching(&mut self) -> Parse<Option<Stmt>> {
        let start = self.at;
        self.at += 1;
        let subject = self.tests();
        let cases = self.is_op(":")
            && self.ahead(1) == Some(&Token::Newline)
            && self.ahead(2) == Some(&Token::Indent)
            && matches!(self.ahead(3), Some(Token::Name(word)) if &**word == "case");
        let (Ok(subject), true) = (subject, cases) else {
            self.at = start;
            return Ok(None);
        };
        self.at += 3;
        let mut found = Vec::new();
        while self.word("case") {
            let mut pattern = self.tests()?;
            if self.word("as") {
                pattern = Expr::Name(self.name()?);
            }
            let guard = self.word("if").then(|| self.test()).transpose()?;
            found.push(Case {
                pattern,
                guard,
                body: self.block()?,
            });
        }
        if self.peek() == Some(&Token::Dedent) {
            self.at += 1;
        }
        Ok(Some(Stmt::Match(subject, found)))
    }
}

pub(super) fn augmented(written: &str) -> Option<Op> {
    match written.strip_suffix('=')? {
        "**" => Some(Op::Pow),
        op => operator(op),
    }
}
