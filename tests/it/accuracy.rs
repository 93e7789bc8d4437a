//! Predictions stay as near to recorded runs as they have come.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use headroom_truth::{Metric, are_posts, posts, score};

/// Scores a compressed file of so many records (inputs and true peaks only) and compares with the most that each figure may be, in
/// percent.
#[track_caller]
fn check(file: &str, cases: usize, metric: Metric, unsupported: usize, median: f64, p90: f64) {
    let text = headroom_testing::unpacked_text(&format!("tests/data/{file}.jsonl.gz"));
    let all = score(&text, metric).all;
    assert!(
        all.cases == cases
            && all.unsupported <= unsupported
            && all.median <= median
            && all.p90 <= p90,
        "{all}"
    );
}

#[test]
fn training_steps() {
    check("truth_simulated", 200, Metric::Allocated, 13, 0.1, 0.5);
    check("truth_simulated", 200, Metric::Reserved, 13, 1.0, 5.0);
}

#[test]
fn further_methods() {
    check("truth_extra", 48, Metric::Allocated, 9, 0.5, 2.0);
}

#[test]
fn both_ranks_of_data_parallel() {
    // Real `torch.nn.DataParallel` with its real allocators, on 2 and 4 GPUs that only count what they are asked for.
    check(
        "truth_data_parallel",
        18,
        Metric::Allocated,
        0,
        0.001,
        0.002,
    );
    check("truth_data_parallel", 18, Metric::Reserved, 0, 0.001, 0.002);
}

#[test]
fn methods_of_adapters_and_optimizers() {
    // Real PEFT 0.21, bitsandbytes, torchao, GaLore, APOLLO and LOMO on four layers of Llama 3.2, on a GPU that only counts.
    check("truth_methods", 104, Metric::Allocated, 0, 0.001, 0.02);
    check("truth_methods", 104, Metric::Reserved, 0, 0.3, 1.0);
    // DEFT, PaRa, GLoRA and PEANuT on the same layers.
    check("truth_adapters", 4, Metric::Allocated, 0, 0.0, 0.0);
}

#[test]
fn tasks_whose_models_are_divided() {
    // Real trainers of TRL 1.16 under `fully_shard` and DeepSpeed 0.19.8, on a rank of eight GPUs that only count.
    check("truth_tasks_divided", 50, Metric::Allocated, 0, 0.1, 0.8);
}

#[test]
fn ranks_of_several_gpus() {
    // One rank of jobs that combine what recordings have singly: hybrid shards, parts of groups, pipelines with a backward in
    // two parts, experts, Megatron-Core, trainers; on a GPU that only counts.
    check("truth_several_gpus", 56, Metric::Allocated, 0, 0.02, 0.45);
    check("truth_several_gpus", 56, Metric::Reserved, 0, 0.25, 3.2);
    check("truth_several_gpus", 56, Metric::Static, 0, 0.1, 1.0);
}

#[test]
fn stages_and_compiled_layers() {
    // Stages of a pipeline under `fully_shard` with its default, a split table's gradient in a step of several operations, and
    // layers that are compiled inside of `fully_shard`; on a rank of GPUs that only count.
    check("truth_stages", 18, Metric::Allocated, 0, 0.001, 0.1);
}

#[test]
fn compiled_layers_of_divided_models() {
    // Layers that are compiled inside of tensor parallelism, pipelines and `fully_shard` with adapters, and around selective checkpoints
    // as torchtitan has them; on a rank of GPUs that only count.
    check("truth_compiled", 10, Metric::Allocated, 0, 0.001, 0.75);
}

#[test]
fn loops_of_ones_own() {
    // Preferences, completions and PPO over transformers' models without a trainer, sampling and evaluation.
    check("truth_own_loops", 32, Metric::Allocated, 0, 0.002, 0.2);
}

#[test]
fn detectors_of_ultralytics() {
    // Real networks and losses of Ultralytics 8.4.190 in a loop like its trainer's, or a plain one, on a GPU that only counts; a tenth
    // of the places lies in an object's box.
    check("truth_yolo", 25, Metric::Allocated, 0, 0.05, 0.12);
    check("truth_yolov5", 7, Metric::Allocated, 0, 0.5, 0.7);
    check("truth_yolo", 25, Metric::Reserved, 0, 0.8, 3.1);
}

#[test]
fn segmentation_of_mmsegmentation() {
    // Its own modules (1.2.2, batch norm in place of its synchronised form) in a plain loop on a GPU that only counts.
    check("truth_segmentation", 23, Metric::Allocated, 0, 0.1, 0.5);
}

#[test]
fn families_by_their_ids() {
    // The real classes of transformers 5.23 at published sizes on a GPU that only counts, by what a user types.
    check("truth_families", 40, Metric::Allocated, 0, 0.001, 0.14);
}

#[test]
fn posts_that_no_rule_was_written_for_are_told_right() {
    // Records of issue trackers, with the cause that their thread verified; the texts are what the programs printed.
    let text = headroom_testing::text("tests/data/oom_posts.jsonl");
    assert!(are_posts(&text));
    let found = posts(&text).to_string();
    let scores = ["first      right 32 of 35", "in three   right 35 of 35"];
    for score in scores {
        assert!(found.contains(score), "{score} of\n{found}");
    }
}
