//! Expressions.

use std::rc::Rc;

use super::ast::{
    Arg, ArgKind, Collection, Comparison, Expr, Function, Op, Param, ParamKind, Stmt,
};
use super::token::Token;
use super::{Broken, Parse, Parser};

/// Longest chain such as `a.b(c)[d].e`.
const LONGEST_CHAIN: usize = 60;

impl Parser<'_> {
    /// `a`, or `a, *b` as a tuple.
    pub fn tests(&mut self) -> Parse<Expr> {
        let first = self.star_or_test()?;
        if !self.is_op(",") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.op(",") {
            if self.ends_list() {
                break;
            }
            items.push(self.star_or_test()?);
        }
        Ok(Expr::Tuple(items))
    }

    pub(super) fn ends_list(&self) -> bool {
        match self.peek() {
            None | Some(Token::Newline) => true,
            Some(Token::Op(op)) => {
                matches!(*op, ")" | "]" | "}" | "=" | ":" | ";")
            }
            Some(Token::Name(word)) => &**word == "in",
            _ => false,
        }
    }

    pub(super) fn star_or_test(&mut self) -> Parse<Expr> {
        if self.op("*") {
            return Ok(Expr::Star(Box::new(self.disjunction()?)));
        }
        self.test()
    }

    /// One expression with what stands below a comma.
    pub fn test(&mut self) -> Parse<Expr> {
        self.deeper(Self::test_inside)
    }

    pub(super) fn test_inside(&mut self) -> Parse<Expr> {
        if self.word("lambda") {
            return self.lambda();
        }
        if self.word("yield") {
            return self.yielded();
        }
        let value = self.disjunction()?;
        if self.is_op(":=") {
            let Expr::Name(name) = value else {
                return Err(Broken);
            };
            self.at += 1;
            return Ok(Expr::Walrus(name, Box::new(self.test()?)));
        }
        if self.word("if") {
            let condition = self.disjunction()?;
            if !self.word("else") {
                return Err(Broken);
            }
            let otherwise = self.test()?;
            return Ok(Expr::Choice(Box::new([value, condition, otherwise])));
        }
        Ok(value)
    }

    pub(super) fn yielded(&mut self) -> Parse<Expr> {
        if self.word("from") {
            return Ok(Expr::Yield(Some(Box::new(self.test()?))));
        }
        if self.ends_list() {
            return Ok(Expr::Yield(None));
        }
        Ok(Expr::Yield(Some(Box::new(self.tests()?))))
    }

    pub(super) fn lambda(&mut self) -> Parse<Expr> {
        let params = self.params(":")?;
        let body = vec![Stmt::Return(Some(self.test()?))];
        Ok(Expr::Lambda(Rc::new(Function {
            name: "<lambda>".into(),
            params,
            body,
            decorators: Vec::new(),
        })))
    }

    /// Parameters up to a closing token, which is consumed. Annotations stand only in front of `)`.
    pub fn params(&mut self, close: &str) -> Parse<Vec<Param>> {
        let mut params = Vec::new();
        let mut kind = ParamKind::Plain;
        while !self.op(close) {
            if self.op("/") {
                self.op(",");
                continue;
            }
            let own = if self.op("**") {
                ParamKind::StarStar
            } else if self.op("*") {
                kind = ParamKind::Named;
                if self.op(",") {
                    continue;
                }
                ParamKind::Star
            } else {
                kind
            };
            let name = self.name()?;
            let annotated = close == ")" && self.op(":");
            let annotation = annotated.then(|| self.star_or_test()).transpose()?;
            let default = self.op("=").then(|| self.test()).transpose()?;
            params.push(Param {
                name,
                kind: own,
                default,
                annotation,
            });
            if !self.op(",") && !self.is_op(close) {
                return Err(Broken);
            }
        }
        Ok(params)
    }

    pub(super) fn disjunction(&mut self) -> Parse<Expr> {
        let first = self.conjunction()?;
        if !self.is_word("or") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.word("or") {
            items.push(self.conjunction()?);
        }
        Ok(Expr::Or(items))
    }

    pub(super) fn conjunction(&mut self) -> Parse<Expr> {
        let first = self.negation()?;
        if !self.is_word("and") {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.word("and") {
            items.push(self.negation()?);
        }
        Ok(Expr::And(items))
    }

    pub(super) fn negation(&mut self) -> Parse<Expr> {
        let mut negative = false;
        let mut any = false;
        while self.word("not") {
            negative = !negative;
            any = true;
        }
        let value = self.comparison()?;
        Ok(match (any, negative) {
            (false, _) => value,
            (true, true) => Expr::Not(Box::new(value)),
            (true, false) => Expr::Not(Box::new(Expr::Not(Box::new(value)))),
        })
    }

    pub(super) fn comparison(&mut self) -> Parse<Expr> {
        let first = self.arithmetic(0)?;
        let mut rest = Vec::new();
        while let Some(comparison) = self.comparator() {
            rest.push((comparison, self.arithmetic(0)?));
        }
        if rest.is_empty() {
            return Ok(first);
        }
        Ok(Expr::Compare(Box::new(first), rest))
    }

    pub(super) fn comparator(&mut self) -> Option<Comparison> {
        let (comparison, length) = match self.peek()? {
            Token::Op("==") => (Comparison::Equal, 1),
            Token::Op("!=") => (Comparison::Unequal, 1),
            Token::Op("<") => (Comparison::Less, 1),
            Token::Op("<=") => (Comparison::LessEqual, 1),
            Token::Op(">") => (Comparison::Greater, 1),
            Token::Op(">=") => (Comparison::GreaterEqual, 1),
            Token::Name(word) => {
                let next = match self.ahead(1) {
                    Some(Token::Name(next)) => &**next,
                    _ => "",
                };
                match (&**word, next) {
                    ("is", "not") => (Comparison::IsNot, 2),
                    ("is", _) => (Comparison::Is, 1),
                    ("in", _) => (Comparison::In, 1),
                    ("not", "in") => (Comparison::NotIn, 2),
                    _ => return None,
                }
            }
            _ => return None,
        };
        self.at += length;
        Some(comparison)
    }

    pub(super) fn arithmetic(&mut self, least: u8) -> Parse<Expr> {
        let mut left = self.unary()?;
        while let Some((op, level)) = self.peek().and_then(binary)
            && level >= least
        {
            self.at += 1;
            let right = self.arithmetic(level + 1)?;
            left = match left {
                Expr::Arithmetic(first, mut rest)
                    if rest.first().is_some_and(|(op, _)| level_of(*op) == level) =>
                {
                    rest.push((op, right));
                    Expr::Arithmetic(first, rest)
                }
                other => Expr::Arithmetic(Box::new(other), vec![(op, right)]),
            };
        }
        Ok(left)
    }

    pub(super) fn unary(&mut self) -> Parse<Expr> {
        if self.op("-") {
            return self.deeper(|parser| Ok(Expr::Negative(Box::new(parser.unary()?))));
        }
        if self.op("+") || self.op("~") {
            return self.deeper(|parser| Ok(Expr::Unary(Box::new(parser.unary()?))));
        }
        let base = self.chain()?;
        if self.op("**") {
            let power = self.deeper(Self::unary)?;
            return Ok(Expr::Arithmetic(Box::new(base), vec![(Op::Pow, power)]));
        }
        Ok(base)
    }

    pub(super) fn chain(&mut self) -> Parse<Expr> {
        while self.word("await") {}
        let mut value = self.atom()?;
        for _ in 0..LONGEST_CHAIN {
            if self.op(".") {
                let Some(Token::Name(name)) = self.peek() else {
                    return Err(Broken);
                };
                self.at += 1;
                value = Expr::Attribute(Box::new(value), name.clone());
            } else if self.op("(") {
                value = Expr::Call(Box::new(value), self.arguments()?);
            } else if self.op("[") {
                value = Expr::Index(Box::new(value), Box::new(self.subscript()?));
            } else {
                return Ok(value);
            }
        }
        Err(Broken)
    }

    /// The arguments of a call, its closing bracket included.
    pub fn arguments(&mut self) -> Parse<Vec<Arg>> {
        let mut args = Vec::new();
        while !self.op(")") {
            let arg = if self.op("**") {
                Arg {
                    kind: ArgKind::SpreadNamed,
                    value: self.test()?,
                }
            } else if self.op("*") {
                Arg {
                    kind: ArgKind::Spread,
                    value: self.test()?,
                }
            } else if let (Some(Token::Name(name)), Some(Token::Op("="))) =
                (self.peek(), self.ahead(1))
            {
                self.at += 2;
                Arg {
                    kind: ArgKind::Named(name.clone()),
                    value: self.test()?,
                }
            } else {
                let value = self.test()?;
                let value = if self.comprehends() {
                    self.comprehension(Collection::Generator, value, None)?
                } else {
                    value
                };
                Arg {
                    kind: ArgKind::Positional,
                    value,
                }
            };
            args.push(arg);
            if !self.op(",") && !self.is_op(")") {
                return Err(Broken);
            }
        }
        Ok(args)
    }

    pub(super) fn subscript(&mut self) -> Parse<Expr> {
        let mut items = Vec::new();
        let mut tuple = false;
        while !self.op("]") {
            items.push(self.slice()?);
            if self.op(",") {
                tuple = true;
            } else if !self.is_op("]") {
                return Err(Broken);
            }
        }
        match (tuple, items.pop()) {
            (_, None) => Err(Broken),
            (false, Some(one)) if items.is_empty() => Ok(one),
            (_, Some(last)) => {
                items.push(last);
                Ok(Expr::Tuple(items))
            }
        }
    }

    pub(super) fn slice(&mut self) -> Parse<Expr> {
        let bound = |parser: &mut Self| -> Parse<Option<Box<Expr>>> {
            let ends = [":", ",", "]"].iter().any(|op| parser.is_op(op));
            (!ends)
                .then(|| parser.star_or_test().map(Box::new))
                .transpose()
        };
        let start = bound(self)?;
        if !self.op(":") {
            return start.map(|start| *start).ok_or(Broken);
        }
        let end = bound(self)?;
        let step = if self.op(":") { bound(self)? } else { None };
        Ok(Expr::Slice(start, end, step))
    }

    pub(super) fn atom(&mut self) -> Parse<Expr> {
        let token = self.peek().ok_or(Broken)?;
        if let Token::Name(word) = token {
            let value = match &**word {
                "None" => Expr::None,
                "True" => Expr::Bool(true),
                "False" => Expr::Bool(false),
                _ => return self.name().map(Expr::Name),
            };
            self.at += 1;
            return Ok(value);
        }
        self.at += 1;
        Ok(match token {
            Token::Int(value) => Expr::Int(*value),
            Token::Float(value) => Expr::Float(*value),
            Token::Text(_) | Token::Format(..) => {
                self.at -= 1;
                return self.strings();
            }
            Token::Op("...") => Expr::Ellipsis,
            Token::Op("(") => return self.parenthesized(),
            Token::Op("[") => return self.list(),
            Token::Op("{") => return self.braces(),
            _ => return Err(Broken),
        })
    }
}

fn binary(token: &Token) -> Option<(Op, u8)> {
    let Token::Op(written) = token else {
        return None;
    };
    let op = operator(written)?;
    Some((op, level_of(op)))
}

/// The operator that is written so, `**` apart.
pub fn operator(written: &str) -> Option<Op> {
    Some(match written {
        "|" => Op::BitOr,
        "^" => Op::BitXor,
        "&" => Op::BitAnd,
        "<<" => Op::ShiftLeft,
        ">>" => Op::ShiftRight,
        "+" => Op::Add,
        "-" => Op::Sub,
        "*" => Op::Mul,
        "/" => Op::Div,
        "//" => Op::FloorDiv,
        "%" => Op::Mod,
        "@" => Op::MatMul,
        _ => return None,
    })
}

fn level_of(op: Op) -> u8 {
    match op {
        Op::BitOr => 0,
        Op::BitXor => 1,
        Op::BitAnd => 2,
        Op::ShiftLeft | Op::ShiftRight => 3,
        Op::Add | Op::Sub => 4,
        Op::Mul | Op::Div | Op::FloorDiv | Op::Mod | Op::MatMul => 5,
        Op::Pow => 6,
    }
}
