//! What the program was doing at the failure, by the frames of its last traceback.

use serde::Serialize;

use super::traceback::Frame;

/// What was running when memory ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Activity {
    Evaluation,
    Checkpoint,
    OptimizerStep,
    /// A forward or backward pass of a training step.
    Training,
    /// A model is built, or its weights are loaded.
    Loading,
    /// Logits over the vocabulary or the classes, and the loss of them.
    Logits,
    /// Products of queries and keys.
    Attention,
    /// Every box of an image is compared with every anchor.
    Boxes,
}

/// The activities of a traceback, the innermost first, each once.
pub(super) fn of_frames(frames: &[Frame]) -> Vec<Activity> {
    let mut found = Vec::new();
    let mut note = |activity: Activity| {
        if !found.contains(&activity) {
            found.push(activity);
        }
    };
    for frame in frames.iter().rev() {
        if let Some(activity) = of_frame(frame) {
            note(activity);
        }
    }
    found
}

/// The activities that lines of code near the last error name, in posts without frames.
pub(super) fn near_error(text: &str) -> Vec<Activity> {
    const LINES: usize = 6;
    let lines: Vec<&str> = text.lines().filter(|line| line.len() < 400).collect();
    let error = lines
        .iter()
        .rposition(|line| line.contains("out of memory"));
    let error = error.unwrap_or(lines.len());
    let near = lines
        .get(error.saturating_sub(LINES)..error)
        .unwrap_or_default();
    let mut found: Vec<Activity> = Vec::new();
    for line in near.iter().rev() {
        let activity = of_code(&line.to_ascii_lowercase());
        if let Some(activity) = activity.filter(|activity| !found.contains(activity)) {
            found.push(activity);
        }
    }
    found
}

fn of_code(code: &str) -> Option<Activity> {
    let part = PARTS.iter().find(|(part, _)| code.contains(part));
    part.map(|(_, activity)| *activity)
}

/// Files that decide by themselves.
const PATHS: &[(&str, Activity)] = &[
    ("/optim/lr_scheduler", Activity::Training),
    ("torch/optim/", Activity::OptimizerStep),
    ("bitsandbytes/optim/", Activity::OptimizerStep),
    (
        "torch/distributed/fsdp/_state_dict_utils",
        Activity::Checkpoint,
    ),
    ("torch/distributed/checkpoint/", Activity::Checkpoint),
    ("torch/autograd/graph.py", Activity::Training),
    ("torch/nn/utils/clip_grad", Activity::Training),
    ("torch/nn/modules/loss.py", Activity::Logits),
    ("transformers/loss/", Activity::Logits),
    ("generation/utils.py", Activity::Evaluation),
];
/// Code and functions that decide by a part of their text.
const PARTS: &[(&str, Activity)] = &[
    ("initialize_optimizer_states", Activity::OptimizerStep),
    ("create_fp32_partitions", Activity::OptimizerStep),
    ("_configure_zero_optimizer", Activity::OptimizerStep),
    ("_init_group", Activity::OptimizerStep),
    ("exp_avg", Activity::OptimizerStep),
    ("optimizer.step(", Activity::OptimizerStep),
    ("optimizer_step", Activity::OptimizerStep),
    ("torch.save(", Activity::Checkpoint),
    ("state_dict()", Activity::Checkpoint),
    ("full_state_dict", Activity::Checkpoint),
    ("gather_state_dict", Activity::Checkpoint),
    ("consolidated_16bit", Activity::Checkpoint),
    ("save_checkpoint", Activity::Checkpoint),
    ("save_pretrained", Activity::Checkpoint),
    ("save_model", Activity::Checkpoint),
    ("load_checkpoint", Activity::Checkpoint),
    ("resume_from_checkpoint", Activity::Checkpoint),
    ("load_from_checkpoint", Activity::Checkpoint),
    ("torch.load(", Activity::Checkpoint),
    ("restore_location", Activity::Checkpoint),
    ("optimizer.load_state_dict", Activity::Checkpoint),
    ("deepcopy(", Activity::Checkpoint),
    ("from_pretrained", Activity::Loading),
    ("_load_state_dict_into", Activity::Loading),
    ("_load_pretrained_model", Activity::Loading),
    ("set_module_tensor_to_device", Activity::Loading),
    ("dispatch_model", Activity::Loading),
    ("load_checkpoint_in_model", Activity::Loading),
    ("load_weights", Activity::Loading),
    ("load_model", Activity::Loading),
    ("model.to(", Activity::Loading),
    ("model.cuda(", Activity::Loading),
    ("model = model.", Activity::Loading),
    (".module.to(", Activity::Loading),
    ("_broadcast_model", Activity::Loading),
    ("_configure_distributed_model", Activity::Loading),
    ("logits.float()", Activity::Logits),
    ("logits.to(torch.float32)", Activity::Logits),
    (".float() # upcast", Activity::Logits),
    ("lm_head(", Activity::Logits),
    ("output_layer(", Activity::Logits),
    ("log_softmax", Activity::Logits),
    ("logsoftmax", Activity::Logits),
    ("cross_entropy", Activity::Logits),
    ("crossentropy", Activity::Logits),
    ("nll_loss", Activity::Logits),
    ("shift_logits", Activity::Logits),
    ("per_token_logps", Activity::Logits),
    ("batch_logps", Activity::Logits),
    ("logprobs_from_logits", Activity::Logits),
    ("kl_div", Activity::Logits),
    ("bbox_overlaps", Activity::Boxes),
    ("box_iou", Activity::Boxes),
    ("pairwise_iou", Activity::Boxes),
    ("iou_calculator", Activity::Boxes),
    ("proposal_matcher", Activity::Boxes),
    ("match_quality_matrix", Activity::Boxes),
    ("mask_target", Activity::Boxes),
    ("gt_masks", Activity::Boxes),
    ("attn_weights", Activity::Attention),
    ("attention_scores", Activity::Attention),
    ("attention_probs", Activity::Attention),
    ("get_attention", Activity::Attention),
    ("torch.bmm(", Activity::Attention),
    ("torch.baddbmm(", Activity::Attention),
    ("q @ k", Activity::Attention),
    ("query @ key", Activity::Attention),
    ("matmul(q", Activity::Attention),
    ("bmm(q", Activity::Attention),
    ("attn = ", Activity::Attention),
    ("sim = ", Activity::Attention),
    ("dots = ", Activity::Attention),
    ("einsum('b i d, b j d", Activity::Attention),
    ("position_bias", Activity::Attention),
    ("run_backward", Activity::Training),
    (".backward(", Activity::Training),
];
/// Words of a function's name, or of a call in its code.
const WORDS: &[(Activity, &[&str])] = &[
    (
        Activity::Checkpoint,
        &["save", "saving", "ckpt", "checkpointing"],
    ),
    (
        Activity::Boxes,
        &["iou", "ious", "overlaps", "assigner", "assign"],
    ),
    (
        Activity::Training,
        &["train", "training", "trainer", "fit", "backward"],
    ),
];
/// Words that say evaluation wherever they stand in a name, and those that do only at its beginning.
const EVALUATES: &[&str] = &[
    "eval",
    "evals",
    "evaluate",
    "evaluation",
    "evaluating",
    "evaluator",
    "validate",
    "validation",
    "validating",
    "validator",
    "inference",
    "rollout",
    "rollouts",
];
const EVALUATES_FIRST: &[&str] = &[
    "val",
    "valid",
    "test",
    "testing",
    "predict",
    "prediction",
    "predictions",
    "infer",
];
/// What is generated in an evaluation; anchors, masks and targets are generated in training.
const GENERATED: &[&str] = &[
    "and",
    "completion",
    "completions",
    "sample",
    "samples",
    "text",
    "texts",
    "image",
    "images",
    "sequence",
    "sequences",
    "batch",
    "response",
    "responses",
    "rollouts",
    "caption",
    "captions",
    "tokens",
    "until",
    "predictions",
];

fn evaluates(words: &[String]) -> bool {
    const LEADING: &[&str] = &["run", "do", "on", "one", "maybe"];
    let names = |known: &[&str], word: &String| known.contains(&word.as_str());
    let mut own = words
        .iter()
        .skip_while(|word| word.is_empty() || names(LEADING, word));
    let first = own.next().is_some_and(|word| names(EVALUATES_FIRST, word));
    let generated = words
        .iter()
        .position(|word| word == "generate" || word == "generation")
        .is_some_and(|at| words.get(at + 1).is_none_or(|next| names(GENERATED, next)));
    first || generated || words.iter().any(|word| names(EVALUATES, word))
}

/// Functions whose words say something else: PyTorch's compiler, several things at once, activation checkpointing.
const OTHERS: &[&str] = &[
    "_maybe_log_save_evaluate",
    "evaluate_expr",
    "eval_frame",
    "train_eval",
    "test_fsdp",
];

fn of_frame(frame: &Frame) -> Option<Activity> {
    let path = frame.path.replace('\\', "/").to_ascii_lowercase();
    // torch.compile's own file is no evaluation, and its recomputation no saved checkpoint.
    let own = [
        "_dynamo/",
        "torch/utils/checkpoint",
        "torch/_inductor",
        "_functorch/",
    ];
    if own.iter().any(|own| path.contains(own)) {
        return None;
    }
    let (function, code) = (
        frame.function.to_ascii_lowercase(),
        frame.code.to_ascii_lowercase(),
    );
    if OTHERS.iter().any(|other| function.contains(other)) {
        return None;
    }
    let in_path = PATHS.iter().find(|(part, _)| path.contains(part));
    if let Some((_, activity)) = in_path {
        return Some(*activity);
    }
    if let Some(activity) = of_code(&code).or_else(|| of_code(&function)) {
        return Some(activity);
    }
    let called = called(frame.code);
    let of_words = |name: &str| {
        let words = words(name);
        if evaluates(&words) {
            return Some(Activity::Evaluation);
        }
        let names = |known: &&(Activity, &[&str])| {
            known
                .1
                .iter()
                .any(|word| words.iter().any(|own| own == word))
        };
        WORDS.iter().find(names).map(|(activity, _)| *activity)
    };
    of_words(called).or_else(|| of_words(frame.function))
}

/// The function that a line of code calls first: `validate` of `loss = self.validate(model, train=False)`.
fn called(code: &str) -> &str {
    let before = code.split('(').next().unwrap_or_default();
    if before.len() == code.len() {
        return "";
    }
    let start = before
        .rfind(|c: char| !(c.is_alphanumeric() || c == '_'))
        .map_or(0, |at| at + 1);
    before.get(start..).unwrap_or_default()
}

/// The words of an identifier: `_evalStep` and `eval_step` are "eval" and "step".
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut was_lower) = (String::new(), false);
    for c in name.chars().take(200) {
        let begins = c.is_uppercase() && was_lower;
        if (!c.is_alphanumeric() || begins) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    words.push(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::traceback;

    #[track_caller]
    fn check(lines: &[&str], expected: &[Activity]) {
        let text = format!("{}\nCUDA out of memory", lines.join("\n"));
        assert_eq!(of_frames(&traceback::last(&text)), expected, "{text}");
    }

    #[test]
    fn the_innermost_frame_decides() {
        use Activity::{
            Attention, Boxes, Checkpoint, Evaluation, Loading, Logits, OptimizerStep, Training,
        };
        check(
            &[
                "File \"t.py\", line 9, in train_epoch",
                "loss.backward()",
                "File \"torch/autograd/graph.py\", line 8, in _engine_run_backward",
            ],
            &[Training],
        );
        // Lightning runs the step inside the optimizer's closure.
        check(
            &[
                "File \"torch/optim/adamw.py\", line 3, in step",
                "loss = closure()",
                "File \"l.py\", line 2, in training_step",
                "x = self(x)",
            ],
            &[Training, OptimizerStep],
        );
        check(
            &[
                "File \"torch/optim/adam.py\", line 77, in step",
                "state['exp_avg_sq'] = torch.zeros_like(p.data)",
            ],
            &[OptimizerStep],
        );
        check(
            &[
                "File \"transformers/trainer.py\", line 3, in _maybe_log_save_evaluate",
                "x",
                "File \"transformers/trainer.py\", line 9, in evaluate",
                "y",
            ],
            &[Evaluation],
        );
        check(
            &[
                "File \"torch/_dynamo/eval_frame.py\", line 489, in _fn",
                "return fn(*args)",
            ],
            &[],
        );
        check(
            &[
                "File \"m.py\", line 1, in retrieval_loss",
                "x = interval(a)",
            ],
            &[],
        );
        check(
            &[
                "File \"m.py\", line 1, in forward",
                "anchors = self.generate_anchors(x)",
            ],
            &[],
        );
        check(
            &[
                "File \"m.py\", line 1, in _mask_predict_by_feat",
                "x = f(a)",
            ],
            &[],
        );
        check(
            &[
                "File \"m.py\", line 1, in _generate_and_score_completions",
                "x = f(a)",
            ],
            &[Evaluation],
        );
        check(
            &["File \"m.py\", line 1, in run_val_epoch", "x = f(a)"],
            &[Evaluation],
        );
        check(
            &[
                "File \"m.py\", line 1, in forward",
                "logits = logits.float()",
            ],
            &[Logits],
        );
        check(
            &[
                "File \"a.py\", line 1, in assign",
                "overlaps = self.iou_calculator(gt_bboxes, bboxes)",
            ],
            &[Boxes],
        );
        check(
            &[
                "File \"m.py\", line 1, in forward",
                "energy = torch.bmm(q, k)",
            ],
            &[Attention],
        );
        check(
            &["File \"t.py\", line 1, in main", "model = model.to(device)"],
            &[Loading],
        );
        check(
            &[
                "File \"t.py\", line 1, in fsdp_save_ckpt",
                "d = ema_model.state_dict()",
            ],
            &[Checkpoint],
        );
        check(
            &[
                "File \"torch/utils/checkpoint.py\", line 157, in backward",
                "torch.autograd.backward(x)",
            ],
            &[],
        );
    }
}
