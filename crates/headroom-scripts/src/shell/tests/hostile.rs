use crate::Alone;
use crate::shell::state::Shell;
use crate::shell::value::Variable;
use crate::shell::{FUEL, evaluate, launches, parse, prepare};
use headroom_testing::{Dice, cases, slow};

/// Pieces that scripts are made of.
const PIECES: &[&str] = &[
    "if [ ",
    " ]; then\n",
    "else\n",
    "fi\n",
    "for i in ",
    "; do\n",
    "done\n",
    "while true; do\n",
    "case $x in\n",
    "a) ",
    ";;\n",
    "esac\n",
    "f() {\n",
    "}\n",
    "f\n",
    "f;f\n",
    "$(",
    ")",
    "`",
    "\"",
    "'",
    "${",
    "}",
    "${A:-",
    "${A//",
    "${A##*",
    "$((",
    "))",
    "((",
    "[[ ",
    " ]]",
    "<<EOF\n",
    "EOF\n",
    "<<<",
    "A=(",
    "A+=(",
    "A=$A$A\n",
    "A=x\n",
    "A+=$A\n",
    "B=\"$A $A\"\n",
    "eval ",
    "eval \"$A\"\n",
    "eval \"$B\"",
    "bash -c '",
    "source a\n",
    "torchrun ",
    "python ",
    "-m ",
    "--nproc_per_node ",
    "8 ",
    "$1 ",
    "\\\n",
    "\\",
    "\n",
    " ",
    "&& ",
    "|| ",
    "| ",
    "& ",
    "; ",
    "export ",
    "local ",
    "declare -A ",
    "read x ",
    "set -- ",
    "shift\n",
    "$@ ",
    "${A[@]} ",
    "{1..500}",
    "{a,b}",
    "é",
    "🦀",
    "\0",
    "\r\n",
    "#SBATCH --gres=gpu:",
    "# ",
    "<x>",
    "> f ",
    "< f ",
    "!",
    "*",
    "?",
    "[",
    "]",
    "=~ ",
    "^(a|a)*$ ",
    "== ",
    "accelerate launch ",
    "deepspeed ",
    "srun ",
    "mpirun -np ",
    "$ ",
    "% ",
    "~",
];

#[test]
fn made_up_scripts_are_bounded() {
    let mut dice = Dice::new(7);
    for _ in 0..cases(1_000) {
        let mut text = String::new();
        for _ in 0..dice.below(60) {
            text.push_str(dice.one_of(PIECES));
        }
        let script = evaluate(&text, &Alone);
        launches(&script, &Alone);
    }
}

#[test]
fn altered_scripts_are_bounded() {
    let text = include_str!("script.txt");
    let mut dice = Dice::new(11);
    for _ in 0..cases(200) {
        let mut chars: Vec<char> = text.chars().collect();
        for _ in 0..=dice.below(8) {
            let at = dice.index(chars.len());
            match dice.below(3) {
                _ if chars.is_empty() => {}
                0 => {
                    chars.remove(at);
                }
                1 => chars.insert(at, dice.one_of(PIECES).chars().next().unwrap_or('x')),
                _ => chars.truncate(at.max(1)),
            }
        }
        let text: String = chars.into_iter().collect();
        let script = evaluate(&text, &Alone);
        launches(&script, &Alone);
    }
}

/// Work that a text may cost, beside reading it once.
#[track_caller]
fn check(text: &str) {
    let fuel = if slow() { FUEL } else { FUEL / 50 };
    let mut shell = Shell::new(&Alone, fuel);
    if let Some(text) = prepare::prepare(text, &mut shell.out.directives) {
        shell.list(&parse::parse(&text, 0));
    }
    let size: usize = shell.variables.values().map(Variable::len).sum();
    assert!(size < 4 << 20, "variables of {size} bytes");
    let words = shell.out.commands.iter().flat_map(|command| &command.words);
    let size: usize = words.map(|word| word.text.len()).sum();
    assert!(size < 8 << 20, "words of {size} bytes");
    launches(&shell.out, &Alone);
}

/// A line many times, each with another number.
fn numbered(line: &str) -> String {
    let line = |at: usize| line.replace('#', &at.to_string());
    (0..500).map(line).collect()
}

#[test]
fn repeated_constructs_are_bounded() {
    let long = if slow() { 1 << 18 } else { 1 << 12 };
    for piece in PIECES {
        check(&piece.repeat(long / piece.len()));
        check(&format!("x {}", piece.repeat(long / 4 / piece.len())));
    }
}

#[test]
fn growth_is_bounded() {
    check(&format!("A=xxxxxxxx\n{}run $A", "A=$A$A\n".repeat(100)));
    check("f() { f; f; }\nf");
    check("A='eval \"$A$A\"'; eval \"$A\"");
    check("while true; do A+=x; done; run $A");
    check(&format!(
        "A=x\n{}",
        "for i in 1 2 3 4 5 6 7 8 9; do ".repeat(20)
    ));
    check(&format!(
        "A={}; {}",
        "a".repeat(20_000),
        "run ${A##*b*c*d} ${A//a/bb}\n".repeat(50)
    ));
    check(&"export A=1\nrun\n".repeat(500));
    check(&numbered("export A#=1; run\n"));
    check(&numbered("A#=1; if x; then y; fi\n"));
    check("cat > a.sh <<'E'\nbash a.sh; bash a.sh\nE\nbash a.sh");
    check(
        "source /dev/stdin <<< 'source a'; set -- $(seq 1 1000); f() { f \"$@\" \"$@\"; }; f \"$@\"",
    );
}
