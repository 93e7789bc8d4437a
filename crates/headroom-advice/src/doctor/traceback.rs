//! The frames of the last traceback: what the program was doing when memory ran out, whatever its log said before.

/// One frame, in the forms of Python, IPython and shortened posts; parts that a form leaves out are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub path: &'a str,
    pub function: &'a str,
    /// The line of code.
    pub code: &'a str,
}

/// Errors that a traceback of a failed allocation ends with.
const ERRORS: &[&str] = &[
    "out of memory",
    "OutOfMemoryError",
    "more than 1EB",
    "CUBLAS_STATUS_",
    "CUDNN_STATUS_",
    "cublas runtime error",
    "NCCL error",
    "No executable batch size",
    "can't allocate memory",
    "Cannot allocate memory",
    "Unable to allocate",
    "is killed by signal",
    "device-side assert",
];
/// Lines between the tracebacks of one log.
const BOUNDARIES: &[&str] = &[
    "Traceback (most recent call last)",
    "During handling of the above exception",
    "The above exception was the direct cause",
];
/// More frames than any traceback has.
const MOST: usize = 2_000;

/// The frames of the last traceback, the outermost first; of several ranks, those of the rank that failed last.
pub(super) fn last(text: &str) -> Vec<Frame<'_>> {
    let lines: Vec<(&str, &str)> = text.lines().map(split_prefix).collect();
    let is_error = |line: &str| ERRORS.iter().any(|error| line.contains(error));
    let error = lines.iter().rposition(|(_, line)| is_error(line));
    let Some(error) = error else {
        return in_lines(&lines, "");
    };
    let rank = lines.get(error).map_or("", |(prefix, _)| prefix);
    let before = lines.get(..error).unwrap_or_default();
    let starts = |(prefix, line): &(&str, &str)| *prefix == rank && is_boundary(line);
    let errors = |(prefix, line): &(&str, &str)| *prefix == rank && is_error(line);
    let boundary = before
        .iter()
        .rposition(starts)
        .or_else(|| before.iter().rposition(errors));
    let start = boundary.map_or(0, |at| at + 1);
    let frames = in_lines(before.get(start..).unwrap_or_default(), rank);
    if !frames.is_empty() {
        return frames;
    }
    // Shortened posts name the error first.
    in_lines(lines.get(error + 1..).unwrap_or_default(), rank)
}

fn is_boundary(line: &str) -> bool {
    BOUNDARIES.iter().any(|boundary| line.contains(boundary))
}

fn in_lines<'a>(lines: &[(&'a str, &'a str)], rank: &str) -> Vec<Frame<'a>> {
    let mut frames: Vec<Frame> = Vec::new();
    for (prefix, line) in lines {
        let line = line.trim();
        if *prefix != rank || line.is_empty() || is_marker(line) {
            continue;
        }
        if is_boundary(line) {
            frames.clear();
        } else if let Some(frame) = frame(line) {
            if frames.len() < MOST {
                frames.push(frame);
            }
        } else if let Some(last) = frames.last_mut() {
            // IPython marks the line among its neighbours.
            let marked = line.trim_start_matches('-').strip_prefix('>');
            match marked {
                Some(code) => {
                    last.code = code.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ');
                }
                None if last.code.is_empty() && !line.starts_with(|c: char| c.is_ascii_digit()) => {
                    last.code = line;
                }
                None => {}
            }
        }
    }
    frames
}

/// `^^^^^` and `~~~~^^` below a line of code.
fn is_marker(line: &str) -> bool {
    line.chars().all(|c| matches!(c, '^' | '~' | ' '))
}

/// The label that a launcher puts before each line of a rank, and the line without it.
fn split_prefix(line: &str) -> (&str, &str) {
    let line = line.trim_start();
    let labelled = line.starts_with('[') || line.starts_with('(');
    let end = labelled.then(|| line.find([']', ')'])).flatten();
    let Some((label, rest)) = end.and_then(|end| line.split_at_checked(end + 1)) else {
        return ("", line);
    };
    let is_rank = label.contains("rank") || label.contains("default") || label.contains("pid=");
    if !is_rank {
        return ("", line);
    }
    (label, rest.trim_start_matches([':', ' ']))
}

/// `File "x.py", line 3, in f`, IPython's `x.py in f(args)` and `File x.py:3, in f(args)`, a post's `in f`.
fn frame(line: &str) -> Option<Frame<'_>> {
    if let Some((_, rest)) = line.split_once("File \"") {
        let (path, rest) = rest.split_once('"')?;
        let function = rest
            .rsplit_once(" in ")
            .map_or("", |(_, function)| name(function));
        return Some(Frame {
            path,
            function,
            code: "",
        });
    }
    if let Some(function) = line.strip_prefix("in ") {
        let function = name(function);
        return (!function.is_empty()).then_some(Frame {
            function,
            ..Frame::default()
        });
    }
    let (path, function) = line
        .split_once(" in ")
        .or_else(|| line.split_once(", in "))?;
    let path = path.trim_start_matches("File ").trim_end_matches(',');
    let words = path.split(' ').count();
    let is_path =
        path.contains(".py") || path.starts_with("<ipython") || path.contains("/ipykernel_");
    (is_path && words == 1).then(|| Frame {
        path,
        function: name(function),
        code: "",
    })
}

/// The name that a text begins with; `<module>` and `<lambda>` are names.
fn name(text: &str) -> &str {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '<' | '>')));
    let (name, rest) = text
        .split_at_checked(end.unwrap_or(text.len()))
        .unwrap_or((text, ""));
    // More words are a sentence.
    if rest.is_empty() || rest.starts_with(['(', '-', ',', ':', '\n']) {
        name
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, &str)]) {
        let found: Vec<(&str, &str)> = last(text)
            .iter()
            .map(|frame| (frame.function, frame.code))
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn frames_of_every_form_are_read() {
        check(
            "Traceback (most recent call last):\n  File \"a/t.py\", line 3, in main\n    run(x)\n    ^^^^^^\n  \
             File \"b.py\", line 9, in run\n    loss.backward()\nRuntimeError: CUDA out of memory. Tried",
            &[("main", "run(x)"), ("run", "loss.backward()")],
        );
        check(
            "<ipython-input-8-3f> in <module>()\n      1 a = 2\n----> 2 trainer.train()\n\n\
             torch/nn/functional.py in cross_entropy(input, target)\n   2823   x\n-> 2824     return loss(a)\n\n\
             OutOfMemoryError: CUDA out of memory.",
            &[
                ("<module>", "trainer.train()"),
                ("cross_entropy", "return loss(a)"),
            ],
        );
        check(
            "cuda runtime error (2) : out of memory at /pytorch\n  in validation_step",
            &[("validation_step", "")],
        );
        check("a sentence in general, and more\nCUDA out of memory", &[]);
    }

    #[test]
    fn only_the_last_traceback_counts() {
        let one = |function: &str| {
            format!(
                "Traceback (most recent call last):\n  File \"t.py\", line 3, in {function}\n    f(x)\n\
                 torch.OutOfMemoryError: CUDA out of memory. Tried\n"
            )
        };
        check(&(one("validate") + &one("train")), &[("train", "f(x)")]);
        let two = "[rank1]: Traceback (most recent call last):\n[rank0]: Traceback (most recent call last):\n\
                   [rank1]:   File \"a.py\", line 1, in evaluate\n[rank0]:   File \"a.py\", line 1, in train\n\
                   [rank0]: CUDA out of memory\n[rank1]: CUDA out of memory\n";
        check(two, &[("evaluate", "")]);
    }
}
