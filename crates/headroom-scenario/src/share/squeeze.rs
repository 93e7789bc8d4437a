//! Shorter text for long values: what came before is named by its distance and length instead of being said again.
//!
//! The letters are those of a link, so that a little of it can still be read. Published links hold such text: neither the
//! dictionary nor the letters may change.

/// What a network's text may refer to from its first letter on.
const DICTIONARY: &str = "kind=cross-entropy,lifetime=persistent,lifetime=transient,lifetime=backward,lifetime=forward,\
    dtype=bf16,dtype=int64,causal=on,gradient=,segments=pass,passes=,frozen=on,shape=batch:sequence:;conv,out=,kernel=3,stride=2;\
    embedding,rows=vocab,width=hidden;activation,kind=relu;activation,kind=gelu;dropout,p=0.1;norm,kind=rms;norm,kind=batch\
    ;attention,heads=heads,norm=none,residual=off,dropout=0.1;mlp,width=4*hidden,gated=on,activation=silu,bias=off,dropout=0.1\
    ;linear,out=hidden;linear,out=vocab;loss,kind=mean,count=2;tensor,name=;part,name=encoder,repeat=12;part,name=decoder,repeat=\
    sizes,hidden=,heads=,layers=,vocab=;input,kind=values,shape=batch:";

/// Opens a repetition, and is itself written twice.
const MARK: char = '~';
/// A repetition takes four letters, so fewer than five are not worth one.
const SHORTEST: usize = 5;
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const FARTHEST: usize = DIGITS.len() * DIGITS.len();
const LONGEST: usize = SHORTEST + DIGITS.len() - 1;

/// The text with its repetitions named; `read` undoes it.
pub(super) fn write(text: &str) -> String {
    let all: Vec<char> = DICTIONARY.chars().chain(text.chars()).collect();
    // The last place where letters with this sum began, and the one before each place.
    let mut heads = [usize::MAX; 1024];
    let mut before = vec![usize::MAX; all.len()];
    let start = DICTIONARY.len();
    let mut squeezed = String::new();
    let mut next = start;
    for at in 0..all.len() {
        let Some(letters) = all.get(at..at + SHORTEST) else {
            if at >= next {
                literal(all[at], &mut squeezed);
            }
            continue;
        };
        let sum = letters.iter().fold(0_u32, |sum, &letter| {
            sum.wrapping_mul(33).wrapping_add(u32::from(letter))
        });
        let head = &mut heads[sum as usize % 1024];
        let nearest = std::mem::replace(head, at);
        before[at] = nearest;
        if at < next || at < start {
            continue;
        }
        match best(&all, &before, nearest, at) {
            Some((from, length)) => {
                squeezed.push(MARK);
                let far = at - from - 1;
                for digit in [length - SHORTEST, far / 64, far % 64] {
                    squeezed.push(char::from(DIGITS[digit % 64]));
                }
                next = at + length;
            }
            None => literal(all[at], &mut squeezed),
        }
    }
    squeezed
}

/// Where the longest repetition of what stands at a place begins, and its length.
fn best(all: &[char], before: &[usize], nearest: usize, at: usize) -> Option<(usize, usize)> {
    const TRIES: usize = 64;
    let mut found: Option<(usize, usize)> = None;
    let mut from = nearest;
    for _ in 0..TRIES {
        if from >= at || at - from > FARTHEST {
            break;
        }
        let same = all[from..].iter().zip(&all[at..]).take(LONGEST);
        let length = same.take_while(|(a, b)| a == b).count();
        if length >= SHORTEST && found.is_none_or(|(_, longest)| length > longest) {
            found = Some((from, length));
        }
        from = before[from];
    }
    found
}

/// A link writes `@` as it is and `;`, which networks are full of, as three letters: they change places.
const fn swapped(letter: char) -> char {
    match letter {
        ';' => '@',
        '@' => ';',
        other => other,
    }
}

fn literal(letter: char, into: &mut String) {
    into.push(swapped(letter));
    if letter == MARK {
        into.push(MARK);
    }
}

/// The text that was squeezed, or nothing where a repetition is cut, reaches too far back, or makes more than `most` letters.
pub(super) fn read(squeezed: &str, most: usize) -> Option<String> {
    let start = DICTIONARY.len();
    let mut all: Vec<char> = DICTIONARY.chars().collect();
    let mut letters = squeezed.chars();
    while let Some(letter) = letters.next() {
        if letter == MARK {
            match letters.next()? {
                MARK => all.push(MARK),
                first => {
                    let length = SHORTEST + digit(first)?;
                    let far = digit(letters.next()?)? * 64 + digit(letters.next()?)? + 1;
                    let from = all.len().checked_sub(far)?;
                    for place in from..from + length {
                        all.push(*all.get(place)?);
                    }
                }
            }
        } else {
            all.push(swapped(letter));
        }
        if all.len() > start + most {
            return None;
        }
    }
    Some(all[start..].iter().collect())
}

fn digit(letter: char) -> Option<usize> {
    DIGITS.iter().position(|&known| char::from(known) == letter)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::Dice;

    #[test]
    fn text_survives() {
        #[track_caller]
        fn check(text: &str, squeezed: &str) {
            assert_eq!(write(text), squeezed);
            assert_eq!(read(squeezed, text.chars().count()).as_deref(), Some(text));
        }
        check("", "");
        check("abc", "abc");
        check("a;b@~", "a@b;~~");
        check("äöüäöüäöüäö", "äöü~DAC");
        assert!(DICTIONARY.is_ascii());
        let mut dice = Dice::new(5);
        let words = ["part,name=", "αβγ", "~", ";", "@", "width=", "0", "aaaaaaa"];
        for _ in 0..300 {
            let text: String = (0..dice.below(90)).map(|_| dice.one_of(&words)).collect();
            assert_eq!(read(&write(&text), 9999), Some(text));
        }
    }

    #[test]
    fn broken_or_boundless_text_is_refused() {
        for text in ["~", "~A", "~AA", "~__", "~AAé", "a~A__", "~Aéa"] {
            assert_eq!(read(text, 100), None, "{text}");
        }
        let bomb = format!("aaaaa{}", "~_AA".repeat(4000));
        assert_eq!(read(&bomb, 8192), None);
    }
}
