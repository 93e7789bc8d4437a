//! Compound commands: conditions, loops, cases, functions and tests.

use super::parse::{Parser, is_name, short};
use super::syntax::{Joint, List, Node, Piece, Raw};
use std::rc::Rc;

impl Parser<'_> {
    pub(super) fn conditional(&mut self) -> Node {
        let mut arms = Vec::new();
        let mut otherwise = None;
        loop {
            self.blanks();
            let start = self.at;
            let condition = self.list(&["then", "fi"]);
            let written = self.since(start).trim().trim_end_matches(';').trim();
            let written: Rc<str> = short(written).into();
            self.take("then");
            let body = self.list(&["elif", "else", "fi"]);
            arms.push((condition, written, body));
            if self.take("elif") {
                continue;
            }
            if self.take("else") {
                otherwise = Some(self.list(&["fi"]));
            }
            self.take("fi");
            return Node::If { arms, otherwise };
        }
    }

    pub(super) fn body_of_loop(&mut self) -> List {
        self.take("do");
        let body = self.list(&["done"]);
        self.take("done");
        body
    }

    pub(super) fn repeated(&mut self) -> Node {
        self.blanks();
        if self.starts("((") {
            self.at += 2;
            let start = self.until_semicolon();
            let condition = self.until_semicolon();
            let step = self.arithmetic();
            self.blanks();
            if self.peek() == Some(b';') {
                self.at += 1;
            }
            return Node::Counted {
                start,
                condition,
                step,
                body: self.body_of_loop(),
            };
        }
        let start = self.at;
        while self.peek().is_some_and(is_name) {
            self.at += 1;
        }
        let name = self.since(start).to_string();
        self.blanks_and_lines();
        let mut words = None;
        if self.keyword() == "in" {
            self.at += 2;
            let mut items = Vec::new();
            loop {
                self.blanks();
                match self.peek() {
                    None | Some(b'\n' | b';' | b'&' | b'|' | b')') => break,
                    Some(b'#') => self.comment(),
                    _ => {}
                }
                match self.word() {
                    Some(word) => items.push(word),
                    None => {
                        if matches!(self.peek(), None | Some(b'\n' | b';')) {
                            break;
                        }
                        self.step();
                    }
                }
            }
            words = Some(items);
        }
        self.blanks_and_lines();
        if self.peek() == Some(b';') {
            self.at += 1;
        }
        Node::For {
            name,
            words,
            body: self.body_of_loop(),
        }
    }

    pub(super) fn case(&mut self) -> Node {
        self.blanks();
        let word = self.word().unwrap_or_default();
        self.take("in");
        let mut arms = Vec::new();
        loop {
            self.blanks_and_lines();
            if self.peek().is_none() || self.keyword() == "esac" {
                break;
            }
            let start = self.at;
            if self.peek() == Some(b'(') {
                self.at += 1;
            }
            let mut patterns = Vec::new();
            loop {
                self.blanks();
                patterns.extend(self.word());
                self.blanks();
                if self.peek() == Some(b'|') {
                    self.at += 1;
                } else {
                    break;
                }
            }
            if self.peek() == Some(b')') {
                self.at += 1;
            }
            let body = self.list(&[";;", "esac"]);
            while matches!(self.peek(), Some(b';' | b'&')) {
                self.at += 1;
            }
            arms.push((patterns, body));
            if self.at == start {
                self.step();
            }
        }
        self.take("esac");
        Node::Case { word, arms }
    }

    pub(super) fn function(&mut self, name: String) -> Node {
        self.blanks_and_lines();
        self.depth += 1;
        let body = self.command();
        self.depth -= 1;
        let body = match body {
            Some(Node::Group(list, _)) => list,
            Some(node) => Rc::new(vec![(Joint::Then, node)]),
            None => List::default(),
        };
        Node::Function { name, body }
    }

    /// The words of `[[ … ]]`, its operators among them.
    pub(super) fn test(&mut self) -> Vec<Raw> {
        let mut words: Vec<Raw> = Vec::new();
        let plain = |text: &str| Raw(vec![Piece::Text(text.into())]);
        loop {
            self.blanks();
            if self.starts("]]") {
                self.at += 2;
                return words;
            }
            let operator = ["&&", "||", "(", ")", "<", ">"];
            let operator = operator.iter().find(|operator| self.starts(operator));
            match self.peek() {
                // What is not closed ends with its command.
                None | Some(b';') => return words,
                Some(b'\n') => self.newline(),
                _ if words.last() == Some(&plain("=~")) => words.push(self.regex()),
                _ if operator.is_some() => {
                    let operator = operator.copied().unwrap_or_default();
                    self.at += operator.len();
                    words.push(plain(operator));
                }
                _ => {
                    let start = self.at;
                    words.extend(self.word());
                    if self.at == start {
                        self.step();
                    }
                }
            }
        }
    }
}
