use crate::shell::{Command, evaluate, evaluate_words};
use crate::{Alone, File};

/// A command's words between bars; a word that depends on what was not given is followed by that in parentheses.
fn written(command: &Command) -> String {
    let word = |word: &crate::shell::Word| match &word.unknown {
        Some(why) => format!("{} ({why})", word.text),
        None => word.text.clone(),
    };
    let words: Vec<String> = command.words.iter().map(word).collect();
    words.join("|")
}

#[track_caller]
fn check(script: &str, commands: &[&str]) {
    let found = evaluate(script, &Alone);
    let found: Vec<String> = found.commands.iter().map(written).collect();
    assert_eq!(found, commands, "{script}");
}

#[track_caller]
fn check_beside(script: &str, files: &[(&str, &str)], commands: &[&str]) {
    let file = |(name, text): &(&str, &str)| File {
        name: (*name).into(),
        text: (*text).into(),
    };
    let files: Vec<File> = files.iter().map(file).collect();
    let found = evaluate(script, &files);
    let found: Vec<String> = found.commands.iter().map(written).collect();
    assert_eq!(found, commands, "{script}");
}

#[test]
fn quoting() {
    check("run a 'b c' \"d e\" f\\ g", &["run|a|b c|d e|f g"]);
    check("run 'a'\"b\"c", &["run|abc"]);
    check("run '' \"\"", &["run||"]);
    check(r#"run "a \"b\" \$c \d""#, &[r#"run|a "b" $c \d"#]);
    check("run $'a\\tb\\'c'", &["run|a\tb'c"]);
    check("run '{\"a\": [1, 2]}'", &["run|{\"a\": [1, 2]}"]);
    check("run [a,b] {a} *.json", &["run|[a,b]|{a}|*.json"]);
    check("run {a,b}.json {1..3}", &["run|a.json|b.json|1|2|3"]);
    check("run a#b # c", &["run|a#b"]);
    check("run don't stop\nrun 2", &["run|don't|stop", "run|2"]);
    check("run \"open\nrun 2", &["run|\"open", "run|2"]);
}

#[test]
fn lines_are_continued() {
    check("run a \\\n  b", &["run|a|b"]);
    check("run a\\\n  b", &["run|a|b"]);
    check("run a \\\r\n  b\r\nrun c\r\n", &["run|a|b", "run|c"]);
    check("run a \\  \n  b", &["run|a|b"]);
    check("run a\\  \n  b", &["run|a|b"]);
    check("run a \\ # why\n  b", &["run|a|b"]);
    check("run a \\\n# b \\\n", &["run|a"]);
    check("run a\n  --b 1\n  --c", &["run|a|--b|1|--c"]);
    check("run a \\\n  # --b \\\n  --c 1", &["run|a|--c|1"]);
    check("run a;\necho x\n--b", &["run|a", "--b"]);
}

#[test]
fn variables() {
    check("A=1 B='x y'\nrun $A ${B} \"$B\"", &["run|1|x|y|x y"]);
    check("A=1; A+=2; run $A", &["run|12"]);
    check(
        "A=$B/c; run \"$A\" $UNSET",
        &["run|$B/c ($B)|$UNSET ($UNSET)"],
    );
    check("export A=1 B=2; run $A$B", &["run|12"]);
    check("export 'A=x y'; run \"$A\"", &["run|x y"]);
    check("readonly A=7; declare -i B=3; run $A $B", &["run|7|3"]);
    check("A=1; unset A; run $A", &["run|$A ($A)"]);
    check("ARGS='--a 1 --b'; run $ARGS", &["run|--a|1|--b"]);
    check("ARGS=; run $ARGS x", &["run|x"]);
    check("CMD='run --a 1'; $CMD --b", &["run|--a|1|--b"]);
    check("N=A; A=5; run ${!N}", &["run|5"]);
}

#[test]
fn parameters() {
    check("run ${A:-x} ${A-y} ${A:=z} $A", &["run|x|y|z|z"]);
    check("A=; run ${A:-x} \"${A-y}\"", &["run|x|"]);
    check("A=1; run ${A:+yes} ${B:+no} end", &["run|yes|end"]);
    check("A=$1; run ${A:-x} ${1:-y} ${2-z}", &["run|x|y|z"]);
    check(
        "run ${1:?model} $1",
        &["run|${1:?model} (${1:?model})|$1 ($1)"],
    );
    check(
        "P=a/b/c.tar.gz; run ${P##*/} ${P#*/} ${P%/*} ${P%%.*} ${P%.gz}",
        &["run|c.tar.gz|b/c.tar.gz|a/b|a/b/c|a/b/c.tar"],
    );
    check(
        "P=a-b-c; run ${P/-/_} ${P//-/_} ${P/#a/x} ${P/%c/y} ${P//-}",
        &["run|a_b-c|a_b_c|x-b-c|a-b-y|abc"],
    );
    check(
        "P=abcdef; run ${#P} ${P:2} ${P:1:2} ${P: -2}",
        &["run|6|cdef|bc|ef"],
    );
    check(
        "P=LLaMA; run ${P,,} ${P^^} ${P,}",
        &["run|llama|LLAMA|lLaMA"],
    );
    check(
        "M=$1/llama-7b; run ${M##*/} ${M%/*}",
        &["run|llama-7b|$1 ($1)"],
    );
    check("M=$1; run ${M##*/}", &["run|${M##*/} ($1)"]);
    check("run \"${A:-\"x y\"}\" ${B:-'p q'}", &["run|x y|p|q"]);
    check(
        "run ${{ secrets.TOKEN }} ${a.b}",
        &["run|${{ secrets.TOKEN }} (${{ secrets.TOKEN }})|${a.b} (${a.b})"],
    );
}

#[test]
fn arrays() {
    check(
        "A=(a 'b c' $X); run \"${A[@]}\" ${#A[@]} ${A[1]} ${A[-1]}",
        &["run|a|b c|$X ($X)|3|b|c|$X ($X)"],
    );
    check(
        "A=(a)\nA+=(b \\\n  c # d\n  e)\nrun ${A[*]} \"${A[*]}\"",
        &["run|a|b|c|e|a b c e"],
    );
    check(
        "A=(a b c); A[1]=x; run ${A[@]} ${A[@]:1} ${A[@]:0:1}",
        &["run|a|x|c|x|c|a"],
    );
    check("run \"${NONE[@]}\" x", &["run|x"]);
    check(
        "declare -A M=([a]=1 [b]=2); K=b; run ${M[$K]} ${M[a]}",
        &["run|2|1"],
    );
    check("declare -A M; M[x]=9; run ${M[x]} ${!M[@]}", &["run|9|x"]);
    check(
        "A=(x y z); I=$((1 + 1)); run ${A[$I]} ${A[I]} ${A[I-1]}",
        &["run|z|z|y"],
    );
    check("A=(x y); run ${A[$1]}", &["run|${A[$1]} ($1)"]);
}

#[test]
fn arithmetic() {
    check(
        "A=6; B=4; run $((A * B)) $(($A+$B)) $(( (A+B) / 3 )) $((A % B)) $((2**5))",
        &["run|24|10|3|2|32"],
    );
    check(
        "run $((1 < 2)) $((3 > 2 ? 8 : 9)) $((0x10)) $((-3 + 1)) $((1 << 4)) $((!0))",
        &["run|1|8|16|-2|16|1"],
    );
    check("A=1; ((A++)); ((A += 3)); let A=A*2; run $A", &["run|10"]);
    check(
        "run $((1 / 0)) $((GPUS * 2))",
        &["run|$((1 / 0)) (1 / 0)|$((GPUS * 2)) (GPUS)"],
    );
    check("run $(expr 3 + 4) $(expr 8 / 2)", &["run|7|4"]);
    check(
        "B=${B:-256}; P=${P:-4}; G=${G:-8}; run $((B / P / G))",
        &["run|8"],
    );
    check("run $(echo \"2 * 8\" | bc)", &["run|16"]);
}

#[test]
fn substitutions() {
    check(
        "run $(basename a/b.sh .sh) $(dirname a/b.sh) `echo x`",
        &["run|b|a|x"],
    );
    check("run $(seq 1 3) $(seq -s, 0 2)", &["run|1|2|3|0,1,2"]);
    check(
        "A=$(nvidia-smi -L | wc -l); run $A",
        &["run|$(nvidia-smi -L | wc -l) ($(nvidia-smi -L | wc -l))"],
    );
    check("G=0,1,2; run $(echo $G | tr ',' '\\n' | wc -l)", &["run|3"]);
    check(
        "G=0,1,2; run $(echo $G | awk -F',' '{print NF}')",
        &["run|3"],
    );
    check(
        "G=0,1; IFS=',' read -ra A <<< \"$G\"; run ${#A[@]}",
        &["run|2"],
    );
    check(
        "M=org/Name; run $(echo $M | cut -d'/' -f2) $(echo \"$M\" | sed 's/Name/x/')",
        &["run|Name|org/x"],
    );
    check("run $(echo $(echo `echo a`))", &["run|a"]);
    check("f() { echo \"$1-x\"; }; run $(f a)", &["run|a-x"]);
    check(
        "read -r -d '' C <<EOF\ntrain --a 1 \\\n  --b\nEOF\nrun $C",
        &["run|train|--a|1|--b"],
    );
    check(
        "C=$(cat <<'EOF'\n--a $x\nEOF\n)\nrun \"$C\"",
        &["run|--a $x"],
    );
}

#[test]
fn conditions() {
    check("if [ -z \"$A\" ]; then A=1; fi; run $A", &["run|1"]);
    check(
        "A=2; if [ -z $A ]; then A=1; else B=3; fi; run $A $B",
        &["run|2|3"],
    );
    check("if [[ $1 != slurm ]]; then run a; fi", &["run|a"]);
    check(
        "if [ $# -ge 1 ]; then run a; elif true; then run b; fi",
        &["run|b"],
    );
    check(
        "M=llama-7b; if [[ $M == *7b* ]]; then run 7; elif [[ $M =~ ^(a|b)$ ]]; then run x; fi",
        &["run|7"],
    );
    check(
        "if [[ 12 =~ ^[0-9]+$ && ! ( a == b ) ]]; then run yes; fi",
        &["run|yes"],
    );
    check("[ \"$1\" = x ] && A=1 || A=2; run $A", &["run|2"]);
    check(
        "A=8; B=8; (( A == B )) && run eq; [ $A -gt 4 ] && run gt",
        &["run|eq", "run|gt"],
    );
    check(
        "if [ \"$#\" -lt 1 ]; then echo usage; exit 1; fi; run $1",
        &["run|$1 ($1)"],
    );
    check(
        "usage() { echo u; exit 1; }; [ -z \"$1\" ] && usage; run a",
        &["run|a"],
    );
    check("run a; exit 0; run b", &["run|a"]);
    check("if test -n \"$X\"; then run a; else run b; fi", &["run|b"]);
}

#[test]
fn conditions_that_are_unknown() {
    // What was there before stays; what only a branch sets is doubted.
    check("A=1; if [ -f x ]; then A=2; fi; run $A", &["run|1"]);
    check(
        "if nvidia-smi; then A=2; else A=3; fi; run $A",
        &["nvidia-smi", "run|2 (nvidia-smi)"],
    );
    check("if [ -d x ]; then A=2; else A=2; fi; run $A", &["run|2"]);
    check("if [ -d x ]; then A=2; else exit 1; fi; run $A", &["run|2"]);
    check(
        "if [ -d x ]; then run a; else run b; fi",
        &["run|a", "run|b"],
    );
    check(
        "[ -f env ] || exit 1; [ -d x ] && run a; run b",
        &["run|a", "run|b"],
    );
    check(
        "N=$(hostname); case $N in a*) A=1;; b) A=2;; esac; run $A",
        &["run|1 ($(hostname))"],
    );
}

#[test]
fn cases_and_options() {
    check(
        "M=7b; case $M in 7b|8b) L=32;; *) L=80;; esac; run $L",
        &["run|32"],
    );
    let options = "MODEL=base\nwhile [[ $# -gt 0 ]]; do\n  case \"$1\" in\n    --model) MODEL=\"$2\"; shift 2;;\n    -h) exit 0;;\n    *) echo unknown; exit 1;;\n  esac\ndone\n";
    check(&format!("{options}run $MODEL"), &["run|base"]);
    check(
        &format!("set -- --model big\n{options}run $MODEL"),
        &["run|big"],
    );
    check(
        "while getopts 'm:d' o; do case $o in m) M=$OPTARG;; esac; done; run ${M:-x}",
        &["run|x"],
    );
    check(
        "set -- -m y; while getopts 'm:d' o; do case $o in m) M=$OPTARG;; esac; done; run $M",
        &["run|y"],
    );
    check("set -- a b c; shift; run $1 $# \"$@\"", &["run|b|2|b|c"]);
    check(
        "set -euo pipefail\nrun --rank 16 \"$@\"",
        &["run|--rank|16"],
    );
}

#[test]
fn loops() {
    check("for m in a b; do run $m; done", &["run|a"]);
    check(
        "S=; for i in 0 1 2; do S+=$i,; done; run ${S%,}",
        &["run|0,1,2"],
    );
    check(
        "S=; for ((i=0; i<3; i++)); do S=$S$i; done; run $S",
        &["run|012"],
    );
    check(
        "A=(x y); for a in \"${A[@]}\"; do for b in 1 2; do run $a $b; done; done",
        &["run|x|1"],
    );
    check(
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done; run $i",
        &["run|3"],
    );
    check(
        "while true; do run a; sleep 5; done; run b",
        &["run|a", "run|b"],
    );
    check(
        "for f in $(ls *.json); do run $f; done",
        &["run|$(ls *.json) ($(ls *.json))"],
    );
    check(
        "for i in 1 2; do if [ $i = 2 ]; then break; fi; done; run $i",
        &["run|2"],
    );
}

#[test]
fn functions() {
    check(
        "f() { local a=$1; run $a $2 $#; }\nf x y\nrun $a",
        &["run|x|y|2", "run|$a ($a)"],
    );
    check("function g { run \"$@\"; }; g 'a b' c", &["run|a b|c"]);
    check("f() { return 1; run no; }; f || run yes", &["run|yes"]);
}

#[test]
fn other_shells() {
    check("eval \"run $X a\"", &["run|$X ($X)|a"]);
    check("C='run \"a b\" | tee log'; eval $C", &["run|a b"]);
    check("bash -c \"run a && run b\"", &["run|a", "run|b"]);
    check("srun -N 2 bash -c 'export A=1; run $A'", &["run|1"]);
    check("nohup env B=2 run a > log 2>&1 &", &["nohup|env|B=2|run|a"]);
    check("ssh host \"cd x && run a\"", &["run|a"]);
    check("bash <<EOF\nrun a\nEOF", &["run|a"]);
    check(
        "cat > job.sh <<'EOF'\nrun $1 ${2:-z}\nEOF\nbash job.sh y",
        &["run|y|z"],
    );
    check(
        "A=1; export B=2; cat > j.sh <<'EOF'\nrun $A $B\nEOF\nsh j.sh",
        &["run|$A ($A)|2"],
    );
    check(
        "f() { run $1; }; export -f f; srun bash -c 'f a'",
        &["run|a"],
    );
}

#[test]
fn files_beside() {
    check_beside("source ./env.sh\nrun $A", &[("env.sh", "A=1")], &["run|1"]);
    check_beside(
        ". conf/a.sh; run $A",
        &[("a.sh", "A=1"), ("conf/a.sh", "A=2")],
        &["run|2"],
    );
    check_beside(
        "GPUS=4 bash scripts/run.sh x --y",
        &[("scripts/run.sh", "run $GPUS \"$@\"")],
        &["run|4|x|--y"],
    );
    check_beside("./run.sh 8", &[("run.sh", "run --n $1")], &["run|--n|8"]);
    check("source venv/bin/activate; run a", &["run|a"]);
}

#[test]
fn files_that_are_written() {
    #[track_caller]
    fn check(script: &str, files: &[(&str, &str)]) {
        let found = evaluate(script, &Alone).files;
        let files: Vec<(String, String)> = files
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()))
            .collect();
        assert_eq!(found, files, "{script}");
    }
    check(
        "N=4\ncat > a.yaml <<EOF\nn: $N\n  m: \"x\"\nEOF\n",
        &[("a.yaml", "n: 4\n  m: \"x\"\n")],
    );
    check(
        "cat <<'EOF' > a.yaml\nn: $N\nEOF\nrun",
        &[("a.yaml", "n: $N\n")],
    );
    check("cat <<-EOF >a\n\tx\n\tEOF\n", &[("a", "x\n")]);
    check("echo 'a: 1' > f; echo b >> f", &[("f", "a: 1\nb\n")]);
    check(
        "tee f.json > /dev/null <<EOF\n{}\nEOF",
        &[("f.json", "{}\n")],
    );
    check("{ echo a; echo b; } > f", &[("f", "a\nb\n")]);
    check("python - <<'EOF'\nprint(1)\nEOF", &[("-", "print(1)\n")]);
}

#[test]
fn documents_and_prompts() {
    check("$ run a \\\n>   b\noutput", &["run|a|b", "output"]);
    check("!run a\n%cd x\n", &["run|a"]);
    check("%%bash\nrun a", &["run|a"]);
    check(
        "Text\n```bash\nrun a\n```\n```python\nimport x\n```\n",
        &["run|a"],
    );
    check(
        "run --a <your path> --b=<x>",
        &["run|--a|<your path> (<your path>)|--b=<x> (<x>)"],
    );
    check("$env:A = 1\npython train.py", &[]);
    check("@echo off\nset A=1\npython train.py %A%", &[]);
    check("#!/usr/bin/env python\nimport os", &[]);
}

#[test]
fn environment_of_commands() {
    #[track_caller]
    fn check(script: &str, environment: &[(&str, &str)]) {
        let found = evaluate(script, &Alone);
        let last = found.commands.last().expect("a command");
        let found: Vec<(&str, &str)> = last
            .environment
            .iter()
            .map(|(name, word)| (name.as_str(), word.text.as_str()))
            .collect();
        assert_eq!(found, environment, "{script}");
    }
    check("A=1; export B=2; C=3 run", &[("B", "2"), ("C", "3")]);
    check("C=3 run; run", &[]);
    check("env X=1 Y=2 run", &[("X", "1"), ("Y", "2")]);
    check(
        "A=1; export A; set -a; B=2; set +a; C=3; run",
        &[("A", "1"), ("B", "2")],
    );
    check("N=2 bash -c 'run'", &[("N", "2")]);
}

#[test]
fn directives() {
    let script = "#!/bin/bash\n#SBATCH --nodes=2 # two\n#SBATCH --gres gpu:a100:4\n#SBATCH -n 8 -p gpu\nrun $SLURM_NNODES $SLURM_GPUS_ON_NODE $((SLURM_NNODES * 4))";
    let found = evaluate(script, &Alone);
    let pairs: Vec<String> = found
        .directives
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    assert_eq!(pairs, ["nodes=2", "gres=gpu:a100:4", "n=8", "p=gpu"]);
    check(script, &["run|2|4|8"]);
}

#[test]
fn words_that_are_apart() {
    #[track_caller]
    fn check(words: &[&str], commands: &[&str]) {
        let words: Vec<String> = words.iter().map(ToString::to_string).collect();
        let found = evaluate_words(&words, &Alone);
        let found: Vec<String> = found.commands.iter().map(written).collect();
        assert_eq!(found, commands, "{words:?}");
    }
    check(&["run", "--a b", "$X"], &["run|--a b|$X"]);
    check(
        &["/bin/bash", "-c", "export N=2; run $N && run b"],
        &["run|2", "run|b"],
    );
    check(&["sh", "-lc", "run a"], &["run|a"]);
}
