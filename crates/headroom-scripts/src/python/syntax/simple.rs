//! Simple statements: those that end with their line.

use super::ast::{Expr, Name, Stmt};
use super::statement::augmented;
use super::token::Token;
use super::{Broken, Parse, Parser};

impl Parser<'_> {
    /// Simple statements up to the end of the line.
    pub(super) fn simple_line(&mut self, body: &mut Vec<Stmt>) -> Parse<()> {
        loop {
            let statement = self.simple()?;
            body.push(statement);
            let more = self.op(";");
            match self.peek() {
                None => return Ok(()),
                Some(Token::Newline) => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) if more => {}
                Some(_) => return Err(Broken),
            }
        }
    }

    fn simple(&mut self) -> Parse<Stmt> {
        let Some(Token::Name(word)) = self.peek() else {
            return self.expression_statement();
        };
        let next_is_name = matches!(self.ahead(1), Some(Token::Name(_)));
        self.at += 1;
        Ok(match &**word {
            "pass" => Stmt::Pass,
            "break" => Stmt::Break,
            "continue" => Stmt::Continue,
            "return" => Stmt::Return(self.optional()?),
            "raise" => {
                self.to_line_end();
                Stmt::Raise
            }
            "assert" | "del" => {
                self.to_line_end();
                Stmt::Pass
            }
            "type" if next_is_name => {
                self.to_line_end();
                Stmt::Pass
            }
            "global" | "nonlocal" => {
                let mut names = vec![self.name()?];
                while self.op(",") {
                    names.push(self.name()?);
                }
                Stmt::Global(names)
            }
            "import" => self.import()?,
            "from" => self.import_from()?,
            _ => {
                self.at -= 1;
                return self.expression_statement();
            }
        })
    }

    fn optional(&mut self) -> Parse<Option<Expr>> {
        match self.peek() {
            None | Some(Token::Newline | Token::Op(";")) => Ok(None),
            _ => self.tests().map(Some),
        }
    }

    pub(super) fn to_line_end(&mut self) {
        while !matches!(self.peek(), None | Some(Token::Newline | Token::Op(";"))) {
            self.at += 1;
        }
    }

    fn dotted(&mut self) -> Parse<Name> {
        let mut path = self.name()?.to_string();
        while self.op(".") {
            path.push('.');
            path.push_str(&self.name()?);
        }
        Ok(path.into())
    }

    fn alias(&mut self) -> Parse<Option<Name>> {
        self.word("as").then(|| self.name()).transpose()
    }

    fn import(&mut self) -> Parse<Stmt> {
        let mut modules = Vec::new();
        loop {
            let module = self.dotted()?;
            modules.push((module, self.alias()?));
            if !self.op(",") {
                return Ok(Stmt::Import(modules));
            }
        }
    }

    fn import_from(&mut self) -> Parse<Stmt> {
        let mut level = 0;
        loop {
            if self.op(".") {
                level += 1;
            } else if self.op("...") {
                level += 3;
            } else {
                break;
            }
        }
        let module = if self.is_word("import") {
            "".into()
        } else {
            self.dotted()?
        };
        if !self.word("import") {
            return Err(Broken);
        }
        if self.op("*") {
            return Ok(Stmt::From(level, module, vec![("*".into(), None)]));
        }
        let bracketed = self.op("(");
        let mut names = Vec::new();
        loop {
            if bracketed && self.op(")") {
                break;
            }
            let name = self.name()?;
            names.push((name, self.alias()?));
            if self.op(",") {
                continue;
            }
            if bracketed {
                self.need(")")?;
            }
            break;
        }
        Ok(Stmt::From(level, module, names))
    }

    fn expression_statement(&mut self) -> Parse<Stmt> {
        let first = self.tests()?;
        if self.op(":") {
            let annotation = self.test()?;
            let value = self.op("=").then(|| self.tests()).transpose()?;
            return Ok(Stmt::Annotated(first, annotation, value));
        }
        if let Some(Token::Op(written)) = self.peek()
            && let Some(op) = augmented(written)
        {
            self.at += 1;
            return Ok(Stmt::Augmented(first, op, self.tests()?));
        }
        if !self.is_op("=") {
            return Ok(Stmt::Expr(first));
        }
        let mut targets = vec![first];
        let mut value = Expr::None;
        while self.op("=") {
            value = self.tests()?;
            if self.is_op("=") {
                targets.push(std::mem::replace(&mut value, Expr::None));
            }
        }
        Ok(Stmt::Assign(targets, value))
    }
}
