//! Lists, dictionaries, sets and comprehensions.

use std::rc::Rc;

use super::ast::{Clause, Collection, Comprehension, Expr};
use super::{Broken, Parse, Parser};

impl Parser<'_> {
    pub(super) fn parenthesized(&mut self) -> Parse<Expr> {
        if self.op(")") {
            return Ok(Expr::Tuple(Vec::new()));
        }
        let value = self.tests()?;
        let value = if self.comprehends() {
            self.comprehension(Collection::Generator, value, None)?
        } else {
            value
        };
        self.need(")")?;
        Ok(value)
    }

    pub(super) fn list(&mut self) -> Parse<Expr> {
        if self.op("]") {
            return Ok(Expr::List(Vec::new()));
        }
        let value = self.star_or_test()?;
        if self.comprehends() {
            let value = self.comprehension(Collection::List, value, None)?;
            self.need("]")?;
            return Ok(value);
        }
        let mut items = vec![value];
        while self.op(",") && !self.is_op("]") {
            items.push(self.star_or_test()?);
        }
        self.need("]")?;
        Ok(Expr::List(items))
    }

    pub(super) fn braces(&mut self) -> Parse<Expr> {
        let mut entries = Vec::new();
        let mut items = Vec::new();
        while !self.op("}") {
            if self.op("**") {
                entries.push((None, self.test()?));
            } else {
                let key = self.star_or_test()?;
                if self.op(":") {
                    let value = self.test()?;
                    if self.comprehends() {
                        let all = self.comprehension(Collection::Dict, key, Some(value))?;
                        self.need("}")?;
                        return Ok(all);
                    }
                    entries.push((Some(key), value));
                } else if self.comprehends() {
                    let all = self.comprehension(Collection::Set, key, None)?;
                    self.need("}")?;
                    return Ok(all);
                } else {
                    items.push(key);
                }
            }
            if !self.op(",") && !self.is_op("}") {
                return Err(Broken);
            }
        }
        if items.is_empty() {
            return Ok(Expr::Dict(entries));
        }
        Ok(Expr::Set(items))
    }

    pub(super) fn comprehends(&self) -> bool {
        self.is_word("for") || (self.is_word("async") && self.at + 1 < self.tokens.len())
    }

    pub(super) fn comprehension(
        &mut self,
        kind: Collection,
        element: Expr,
        value: Option<Expr>,
    ) -> Parse<Expr> {
        let mut clauses = Vec::new();
        while self.comprehends() {
            self.word("async");
            if !self.word("for") {
                return Err(Broken);
            }
            let target = self.targets()?;
            if !self.word("in") {
                return Err(Broken);
            }
            let of = self.disjunction()?;
            let mut tests = Vec::new();
            while self.word("if") {
                tests.push(self.disjunction()?);
            }
            clauses.push(Clause { target, of, tests });
        }
        Ok(Expr::Comprehension(Rc::new(Comprehension {
            kind,
            element,
            value,
            clauses,
        })))
    }

    /// What stands between `for` and `in`.
    pub fn targets(&mut self) -> Parse<Expr> {
        let mut items = Vec::new();
        let mut tuple = false;
        while !self.is_word("in") {
            let star = self.op("*");
            let item = self.arithmetic(0)?;
            items.push(if star {
                Expr::Star(Box::new(item))
            } else {
                item
            });
            if !self.op(",") {
                break;
            }
            tuple = true;
        }
        match items.pop() {
            Some(only) if items.is_empty() && !tuple => Ok(only),
            Some(last) => {
                items.push(last);
                Ok(Expr::Tuple(items))
            }
            None => Err(Broken),
        }
    }
}
