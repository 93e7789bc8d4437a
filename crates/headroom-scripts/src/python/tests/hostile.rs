use super::*;
use crate::python::eval::{MOST_WORK, evaluate_counting};

/// Texts that make evaluators repeat, recurse or grow.
const GREEDY: [&str; 14] = [
    "x = 'a' * 10 ** 9\ny = x * x",
    "x = 'ab'\nfor i in range(1000):\n    x = x + x",
    "x = [0]\nfor i in range(1000):\n    x = [x, x, x]\nf(x)",
    "d = {}\nd['d'] = d\nimport a\na.f(d, **d)",
    "def f(n):\n    return f(n) + f(n) + f(n)\nf(1)",
    "def a(): b(); b()\ndef b(): a(); a()\na()",
    "x = [[[i for i in range(1000)] for j in range(1000)] for k in range(1000)]",
    "class A(A): pass\nclass B(A, A, A, A): pass\nclass C(B, B, B, B): pass\nC().x",
    "while True:\n    while True:\n        x = x ** x ** x",
    "x = f'{f\"{x}\"}' * 9999999999999999999999999",
    "import a\nif a.b:\n  x = 1\nelif a.c:\n  x = 2\nelse:\n  x = 3\n",
    "x = 2 ** 2 ** 2 ** 2 ** 2 ** 99999999; y = 1 << 99999999999; z = -(-170141183460469231731687303715884105728)",
    "x = range(10 ** 30); y = list(x) * 10 ** 30; z = '%99999999999d' % 1; w = f'{1:999999999}'",
    "x = -170141183460469231731687303715884105728\ny = abs(x - 1), x // -1, x % -1, x[x:x:x], 'abc'[x:], [1][x]",
];

#[track_caller]
fn check(text: &str) {
    let work = evaluate_counting(text, &["--x".into(), "y=1".into()], &Alone);
    assert!(
        work < 2 * MOST_WORK,
        "{work} steps for {}",
        &text.chars().take(200).collect::<String>()
    );
}

#[test]
fn greedy_texts_are_bounded() {
    for text in GREEDY {
        check(text);
        check(&format!("{text}\n").repeat(200));
    }
}

#[test]
fn deep_texts_are_bounded() {
    for (open, close) in [
        ("(", ")"),
        ("[", "]"),
        ("{", "}"),
        ("f(", ")"),
        ("-", ""),
        ("not ", ""),
        ("lambda: ", ""),
        ("x if y else ", ""),
        ("a.", "b"),
        ("a[0]", ""),
        ("a()", ""),
        ("2**", ""),
        ("1+", "1"),
        ("f'{", "}'"),
        ("if a:\n ", ""),
        ("await ", ""),
        ("*", ""),
        ("\\\n", ""),
        ("\"\"\"", ""),
        ("a=", ""),
        ("@a\n", ""),
    ] {
        for times in [50, 200, 20_000] {
            check(&format!(
                "x = {}1{}",
                open.repeat(times),
                close.repeat(times)
            ));
            check(&format!("{}1{}", open.repeat(times), close.repeat(times)));
        }
    }
    for header in [
        "if a:",
        "for i in a:",
        "while a:",
        "with a:",
        "def f():",
        "class A:",
        "try:",
    ] {
        let lines = (0..300).map(|depth| " ".repeat(depth) + header + "\n");
        check(&lines.collect::<String>());
    }
    let functions = (0..500).map(|at| format!("def f{at}(): return f{}()", at + 1));
    check(&(functions.collect::<Vec<_>>().join("\n") + "\nf0()"));
}

#[test]
fn altered_texts_are_bounded() {
    let texts = [
        include_str!("language.rs"),
        "import argparse, yaml\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int = 1\n    y: str = 'a'\ndef main(cfg, *a, **k):\n    for i, (b, c) in enumerate(zip([1, 2], 'ab')):\n        if i > 0 and cfg['k'] is not None: d = {**k, 'e': f'{i:03d}'}\n        elif not a: return [z for z in range(3) if z % 2]\n    with open('x.yaml') as f: k = yaml.safe_load(f)\n    return A(**k).x\nif __name__ == '__main__':\n    p = argparse.ArgumentParser()\n    p.add_argument('--cfg', nargs='+', type=int, default=[1])\n    main(p.parse_args(), 1, b=2)\n",
    ];
    let pieces = [
        "(", ")", "[", "]", "{", "}", ":", "\n", "\n    ", "'", "\"\"\"", "f'", "{x}", "=", ".",
        ",", "*", "**", "lambda ", "if ", "for ", "in ", "def ", "class ", "return ", "%", "!",
        "\\", "#", "é", "\t", "0x", "1e", ":=", "@", "yield ", "await ",
    ];
    let mut dice = Dice::new(28);
    for _ in 0..cases(300) {
        let mut text: Vec<char> = texts[dice.index(texts.len())].chars().collect();
        for _ in 0..=dice.below(12) {
            let at = dice.index(text.len());
            match dice.below(4) {
                0 => drop(text.splice(at..at, dice.one_of(&pieces).chars())),
                1 => drop(text.splice(at..at, dice.one_of(HOSTILE).chars())),
                2 => {
                    let end = (at + dice.index(40)).min(text.len());
                    text.drain(at..end);
                }
                _ => {
                    let end = (at + dice.index(400)).min(text.len());
                    let copy: Vec<char> = text[at..end].to_vec();
                    let to = dice.index(text.len());
                    text.splice(to..to, copy);
                }
            }
        }
        check(&text.into_iter().collect::<String>());
    }
}

#[test]
fn long_texts_are_cut() {
    for line in [
        "x = 1\n",
        "a.b(c=1)\n",
        "import a\n",
        "y = f'{x}{x}'\n",
        "def f(x): return x\n",
        "(",
        "'",
        "#\n",
    ] {
        check(&line.repeat((1 << 20) / line.len()));
    }
}
