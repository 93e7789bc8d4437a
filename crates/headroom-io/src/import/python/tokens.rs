//! The words of a script.

use headroom_base::document::Document;

#[derive(Clone, Debug, PartialEq)]
pub enum Token {
    /// A name with its dots.
    Name(String),
    Value(Document),
    Sign(char),
    Line,
}

/// Names, plain values and signs; comments and what is formatted are left out.
pub fn tokens(text: &str) -> Vec<Token> {
    let mut all = Vec::new();
    let mut letters = text.chars().peekable();
    while let Some(&letter) = letters.peek() {
        if letter == '\n' {
            letters.next();
            all.push(Token::Line);
        } else if letter.is_whitespace() {
            letters.next();
        } else if letter == '#' {
            while letters.next_if(|letter| *letter != '\n').is_some() {}
        } else if letter == '"' || letter == '\'' {
            letters.next();
            let found = quoted(&mut letters, letter, false);
            all.push(Token::Value(Document::Text(found)));
        } else if letter.is_ascii_digit() {
            all.push(number(&mut letters));
        } else if letter.is_alphabetic() || letter == '_' {
            let mut name = String::new();
            let part = |letter: &char| letter.is_alphanumeric() || matches!(letter, '_' | '.');
            while let Some(letter) = letters.next_if(part) {
                name.push(letter);
            }
            let quote = letters
                .peek()
                .copied()
                .filter(|quote| matches!(quote, '"' | '\''));
            let prefix = name.len() <= 2 && name.chars().all(|c| "rRbBfFuU".contains(c));
            if let Some(quote) = quote.filter(|_| prefix) {
                letters.next();
                let raw = name.contains(['r', 'R']);
                let found = quoted(&mut letters, quote, raw);
                // What is put in only when it runs is not known.
                let formatted = name.contains(['f', 'F']) && found.contains('{');
                all.push(if formatted {
                    Token::Sign('?')
                } else {
                    Token::Value(Document::Text(found))
                });
            } else {
                all.push(named(name));
            }
        } else {
            letters.next();
            all.push(Token::Sign(letter));
        }
    }
    all
}

fn named(name: String) -> Token {
    match name.as_str() {
        "True" => Token::Value(Document::Bool(true)),
        "False" => Token::Value(Document::Bool(false)),
        "None" => Token::Value(Document::Null),
        _ => Token::Name(name),
    }
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The text up to the closing quotes, one or three.
fn quoted(letters: &mut Letters, quote: char, raw: bool) -> String {
    let mut text = String::new();
    let mut opened = 1;
    while opened < 3 && letters.next_if_eq(&quote).is_some() {
        opened += 1;
    }
    if opened == 2 {
        return text;
    }
    let mut closing = 0;
    while let Some(letter) = letters.next() {
        if letter == quote {
            closing += 1;
            if closing == opened {
                return text;
            }
            continue;
        }
        text.extend(std::iter::repeat_n(quote, closing));
        closing = 0;
        match letter {
            '\n' if opened == 1 => return text,
            '\\' if !raw => match letters.next() {
                Some('n') => text.push('\n'),
                Some('\n') | None => {}
                Some(plain) => text.push(plain),
            },
            plain => text.push(plain),
        }
    }
    text
}

fn number(letters: &mut Letters) -> Token {
    let mut digits = String::new();
    let part = |letter: &char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.');
    while let Some(letter) = letters.next_if(part) {
        digits.push(letter);
        // The sign of an exponent.
        if matches!(letter, 'e' | 'E')
            && let Some(sign) = letters.next_if(|letter| matches!(letter, '-' | '+'))
        {
            digits.push(sign);
        }
    }
    digits.retain(|letter| letter != '_');
    if let Ok(whole) = digits.parse::<i128>() {
        return Token::Value(Document::Int(whole));
    }
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() => Token::Value(Document::Number(number)),
        _ => Token::Sign('?'),
    }
}
