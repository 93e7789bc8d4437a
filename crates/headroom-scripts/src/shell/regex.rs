//! Regular expressions of `[[ =~ ]]`, as far as scripts use them.

use super::pattern::Fuel;

enum Node {
    Char(char),
    Any,
    Set(Vec<(char, char)>, bool),
    Start,
    End,
    Group(Vec<Vec<Node>>),
    Repeat(Box<Node>, usize, usize),
}

/// Whether an expression is found in a text; `None` if it is not understood, or too much work.
pub(super) fn finds(expression: &str, text: &str, fuel: &mut Fuel) -> Option<bool> {
    if expression.len() > 400 || text.len() > 400 {
        return None;
    }
    let mut chars: Vec<char> = expression.chars().collect();
    chars.reverse();
    let choices = choices(&mut chars, 0)?;
    if !chars.is_empty() {
        return None;
    }
    let text: Vec<char> = text.chars().collect();
    for start in 0..=text.len() {
        for choice in &choices {
            let ends = follow(choice, &text, vec![start], fuel)?;
            if !ends.is_empty() {
                return Some(true);
            }
        }
    }
    Some(false)
}

/// Alternatives up to a closing parenthesis; the characters that are left are in reverse.
fn choices(chars: &mut Vec<char>, depth: u32) -> Option<Vec<Vec<Node>>> {
    if depth > 10 {
        return None;
    }
    let mut all = vec![Vec::new()];
    while let Some(next) = chars.last().copied() {
        if next == ')' && depth > 0 {
            break;
        }
        chars.pop();
        let node = match next {
            '|' => {
                all.push(Vec::new());
                continue;
            }
            '^' => Node::Start,
            '$' => Node::End,
            '.' => Node::Any,
            '(' => {
                let inside = choices(chars, depth + 1)?;
                (chars.pop() == Some(')')).then_some(Node::Group(inside))?
            }
            '[' => {
                let excluded = chars.last() == Some(&'^');
                if excluded {
                    chars.pop();
                }
                let mut ranges = Vec::new();
                loop {
                    let first = chars.pop()?;
                    if first == ']' && !ranges.is_empty() {
                        break;
                    }
                    if first == '[' && chars.last() == Some(&':') {
                        let mut name = String::new();
                        while let Some(char) = chars.pop() {
                            if char == ']' {
                                break;
                            }
                            name.push(char);
                        }
                        ranges.extend_from_slice(match name.as_str() {
                            ":digit:" => &[('0', '9')],
                            ":alpha:" => &[('a', 'z'), ('A', 'Z')],
                            ":alnum:" => &[('a', 'z'), ('A', 'Z'), ('0', '9')],
                            ":space:" => &[(' ', ' '), ('\t', '\r')],
                            _ => return None,
                        });
                        continue;
                    }
                    let last = chars.len().checked_sub(2).and_then(|at| chars.get(at));
                    match last {
                        Some(last) if chars.last() == Some(&'-') && *last != ']' => {
                            ranges.push((first, *last));
                            chars.truncate(chars.len() - 2);
                        }
                        _ => ranges.push((first, first)),
                    }
                }
                Node::Set(ranges, excluded)
            }
            '\\' => Node::Char(chars.pop()?),
            other => Node::Char(other),
        };
        let node = match chars.last() {
            Some('*') => Node::Repeat(Box::new(node), 0, usize::MAX),
            Some('+') => Node::Repeat(Box::new(node), 1, usize::MAX),
            Some('?') => Node::Repeat(Box::new(node), 0, 1),
            Some('{') => return None,
            _ => {
                all.last_mut()?.push(node);
                continue;
            }
        };
        chars.pop();
        all.last_mut()?.push(node);
    }
    Some(all)
}

/// Where a sequence may end that starts at any of these places.
fn follow(
    sequence: &[Node],
    text: &[char],
    starts: Vec<usize>,
    fuel: &mut Fuel,
) -> Option<Vec<usize>> {
    let mut places = starts;
    for node in sequence {
        places = after(node, text, &places, fuel)?;
        if places.is_empty() {
            break;
        }
    }
    Some(places)
}

fn after(node: &Node, text: &[char], places: &[usize], fuel: &mut Fuel) -> Option<Vec<usize>> {
    if !fuel.burn(places.len() + 1) {
        return None;
    }
    let one = |fits: &dyn Fn(char) -> bool| -> Vec<usize> {
        let fits = |place: &&usize| text.get(**place).is_some_and(|char| fits(*char));
        places.iter().filter(fits).map(|place| place + 1).collect()
    };
    let mut found = match node {
        Node::Char(char) => one(&|other| other == *char),
        Node::Any => one(&|_| true),
        Node::Set(ranges, excluded) => {
            one(&|char| ranges.iter().any(|(a, b)| (*a..=*b).contains(&char)) != *excluded)
        }
        Node::Start => places.iter().copied().filter(|place| *place == 0).collect(),
        Node::End => {
            let end = |place: &usize| *place == text.len();
            places.iter().copied().filter(end).collect()
        }
        Node::Group(choices) => {
            let mut all = Vec::new();
            for choice in choices {
                all.extend(follow(choice, text, places.to_vec(), fuel)?);
            }
            all
        }
        Node::Repeat(inner, least, most) => {
            let mut all: Vec<usize> = if *least == 0 {
                places.to_vec()
            } else {
                Vec::new()
            };
            let mut now = places.to_vec();
            let mut turns = 0;
            while turns < *most && turns <= text.len() {
                now = after(inner, text, &now, fuel)?;
                now.retain(|place| !all.contains(place));
                if now.is_empty() {
                    break;
                }
                all.extend(&now);
                turns += 1;
            }
            all
        }
    };
    found.sort_unstable();
    found.dedup();
    Some(found)
}
