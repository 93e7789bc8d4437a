use crate::Alone;
use crate::shell::{Form, evaluate, flags};

/// Flags as `--key=value|value`, `key:=value` for overrides, `~key`, and words on their own.
#[track_caller]
fn check(arguments: &str, expected: &[&str]) {
    let script = evaluate(&format!("run {arguments}"), &Alone);
    let words = script
        .commands
        .first()
        .map(|command| command.words[1..].to_vec());
    let written = |flag: crate::shell::Flag| {
        let value = |word: &crate::shell::Word| match &word.unknown {
            Some(why) => format!("{} ({why})", word.text),
            None => word.text.clone(),
        };
        let values: Vec<String> = flag.values.iter().map(value).collect();
        let values = values.join("|");
        match flag.form {
            Form::Option if flag.values.is_empty() => format!("--{}", flag.key),
            Form::Option => format!("--{}={values}", flag.key),
            Form::Override => format!("{}:={values}", flag.key),
            Form::Removed => format!("~{}", flag.key),
            Form::Positional => values,
        }
    };
    let found: Vec<String> = flags(&words.unwrap_or_default())
        .into_iter()
        .map(written)
        .collect();
    assert_eq!(found, expected, "{arguments}");
}

#[test]
fn options() {
    check(
        "--a 1 --b=2 --c --d x y -e 3 -f",
        &["--a=1", "--b=2", "--c", "--d=x|y", "--e=3", "--f"],
    );
    check(
        "--lr 1e-4 --warmup -1 --x -0.5 --y -1e-3",
        &["--lr=1e-4", "--warmup=-1", "--x=-0.5", "--y=-1e-3"],
    );
    check(
        "--fsdp 'full_shard auto_wrap' --json '{\"a\": 1}'",
        &["--fsdp=full_shard auto_wrap", "--json={\"a\": 1}"],
    );
    check(
        "--actor.model.path x --a-b 1",
        &["--actor.model.path=x", "--a-b=1"],
    );
    check(
        "--model=a=b --empty= --quoted \"\"",
        &["--model=a=b", "--empty=", "--quoted="],
    );
}

#[test]
fn overrides() {
    check(
        "a.b=1 +c=2 ++d.e=[x,y] ~f model@x=y",
        &["a.b:=1", "c:=2", "d.e:=[x,y]", "~f", "model@x:=y"],
    );
    check(
        "train.yaml a=1 --x 2 b=3",
        &["train.yaml", "a:=1", "--x=2", "b:=3"],
    );
    check(
        "--config c.yaml lr=1 model.name=x",
        &["--config=c.yaml", "lr:=1", "model.name:=x"],
    );
    check(
        "c.py --cfg-options a.b=1 c=2",
        &["c.py", "--cfg-options", "a.b:=1", "c:=2"],
    );
    check(
        "--model_args pretrained=x,dtype=y",
        &["--model_args=pretrained=x,dtype=y"],
    );
    check("@ run.toml --a.b 1", &["--@=run.toml", "--a.b=1"]);
    check(
        "'data.files=[\"/a/b\"]' actor.x=null",
        &["data.files:=[\"/a/b\"]", "actor.x:=null"],
    );
}

#[test]
fn unknown_parts() {
    check(
        "--model $1 --out o/$X",
        &["--model=$1 ($1)", "--out=o/$X ($X)"],
    );
    check(
        "--flag $EXTRA_ARGS",
        &["--flag", "$EXTRA_ARGS ($EXTRA_ARGS)"],
    );
    check(
        "--a=$UNKNOWN lr=$LR",
        &["--a=$UNKNOWN ($UNKNOWN)", "lr:=$LR ($LR)"],
    );
}
