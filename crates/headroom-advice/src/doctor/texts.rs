//! First causes of texts in the wordings of PyTorch, transformers, DeepSpeed, Ray, Slurm and the kernel.

use super::*;
use headroom_base::units::Bytes;

const NEW: &str = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.10 GiB is \
                   free. Including non-PyTorch memory, this process has 22.50 GiB memory in use. Of the allocated memory 21.40 GiB \
                   is allocated by PyTorch, and 600.00 MiB is reserved by PyTorch but unallocated.";

#[track_caller]
fn check(cause: Cause, lines: &[&str]) {
    let text = lines.join("\n");
    let found = diagnose(&Findings::parse(&text).unwrap(), None);
    assert_eq!(found.cause, cause, "{text}\n{found:#?}");
}

/// A frame and its line of code.
fn frame(path: &str, function: &str, code: &str) -> String {
    format!("  File \"{path}\", line 7, in {function}\n    {code}")
}

#[test]
fn the_last_traceback_decides_before_bars_and_warnings() {
    let log = "Evaluating: 100%|██████████| 61/61 [00:03<00:00, 17.2it/s]\n\
               site-packages/torch/optim/lr_scheduler.py:62: UserWarning: The verbose parameter is deprecated.\n\
               Epoch 5/300\nTraining:  48%|████▊     | 117/244 [00:31<00:34,  3.71it/s]";
    let trained = frame("train.py", "train_epoch", "loss.backward()");
    let small = NEW.replace("2.00 GiB", "6.44 GiB");
    check(
        Cause::Outlier,
        &[log, "Traceback (most recent call last):", &trained, &small],
    );
    let evaluated = frame("train.py", "evaluate", "out = model(batch)");
    check(
        Cause::Evaluation,
        &[log, "Traceback (most recent call last):", &evaluated, NEW],
    );
    // Lightning's closure: the step runs inside the optimizer.
    let closure = frame("torch/optim/adamw.py", "step", "loss = closure()");
    let step = frame("model.py", "training_step", "loss = self(batch)");
    check(
        Cause::Capacity,
        &["Traceback (most recent call last):", &closure, &step, NEW],
    );
    let states = frame(
        "torch/optim/adamw.py",
        "_init_group",
        "state['exp_avg'] = torch.zeros_like(p)",
    );
    check(
        Cause::OptimizerStep,
        &["Traceback (most recent call last):", &states, NEW],
    );
}

#[test]
fn compiled_code_and_impossible_sizes_are_what_they_are() {
    let compiled = frame(
        "torch/_dynamo/eval_frame.py",
        "_fn",
        "return fn(*args, **kwargs)",
    );
    check(Cause::Capacity, &[&compiled, NEW]);
    let saved = frame("save.py", "save_model", "state = model.state_dict()");
    check(Cause::Checkpoint, &[&saved, NEW]);
    let eb = "RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.";
    check(Cause::NotOutOfMemory, &[&saved, eb]);
}

#[test]
fn logits_boxes_attention_and_loading_are_causes() {
    let upcast = frame("modeling_llama.py", "forward", "logits = logits.float()");
    check(Cause::Logits, &[&upcast, NEW]);
    check(
        Cause::Logits,
        &[
            &frame(
                "torch/nn/functional.py",
                "cross_entropy",
                "return torch._C._nn.cross_entropy_loss(",
            ),
            NEW,
        ],
    );
    // Of a generation, though, the phase is the cause.
    let generated = frame(
        "trainer.py",
        "_generate_and_score_completions",
        "ids = model.generate(",
    );
    check(Cause::Evaluation, &[&generated, &upcast, NEW]);
    let boxes = frame(
        "max_iou_assigner.py",
        "assign",
        "overlaps = self.iou_calculator(gt_bboxes, bboxes)",
    );
    check(Cause::Outlier, &[&boxes, NEW]);
    let scores = frame(
        "attention.py",
        "forward",
        "attn_weights = torch.matmul(q, k.transpose(2, 3))",
    );
    check(Cause::Attention, &[&scores, NEW]);
    check(
        Cause::Attention,
        &[
            "    scores = (query @ key.transpose(-2, -1)).to(dtype)",
            "torch.OutOfMemoryError: CUDA out of memory.",
        ],
    );
    let loading = frame(
        "deepspeed/runtime/engine.py",
        "_configure_distributed_model",
        "self.module.to(self.device)",
    );
    check(Cause::Capacity, &[&loading, NEW]);
}

#[test]
fn libraries_that_have_no_memory_are_full_gpus() {
    check(
        Cause::Capacity,
        &[
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ],
    );
    check(
        Cause::Capacity,
        &[
            "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        ],
    );
    let index =
        "Indexing.cu:1093: indexSelectSmallIndex: Assertion `srcIndex < srcSelectDimSize` failed.";
    check(
        Cause::NotOutOfMemory,
        &[
            index,
            "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        ],
    );
    check(
        Cause::Capacity,
        &[
            "NCCL error in: ProcessGroupNCCL.cpp:1275, unhandled cuda error, NCCL version 2.18.1",
            "Last error:\nFailed to CUDA calloc async 608 bytes",
        ],
    );
    check(
        Cause::SharedMemory,
        &[
            "ncclSystemError: System call failed.",
            "Last error: Error while creating shared memory segment /dev/shm/nccl-3Db (size 57)",
        ],
    );
}

#[test]
fn memory_that_nobody_owns_is_of_others() {
    let resumed = "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.17 GiB total capacity; 962.69 MiB already allocated; \
                   17.19 MiB free; 980.00 MiB reserved in total by PyTorch)";
    let load = frame(
        "torch/serialization.py",
        "_cuda_deserialize",
        "return obj.cuda(device)",
    );
    let resume = frame(
        "main.py",
        "load_model",
        "optimizer.load_state_dict(torch.load(path))",
    );
    check(Cause::OtherProcess, &[&resume, &load, resumed]);
    let found = diagnose(
        &Findings::parse(&[&resume, &load, resumed].join("\n")).unwrap(),
        None,
    );
    assert_eq!(found.ranking[1].cause, Cause::WrongDevice);
    // Windows lends the host's memory.
    check(
        Cause::Capacity,
        &[
            "CUDA out of memory. Tried to allocate 10.73 GiB (GPU 0; 8.00 GiB total capacity; 17.20 GiB already allocated; 0 bytes \
           free; 19.15 GiB reserved in total by PyTorch)",
        ],
    );
}

#[test]
fn killers_are_the_hosts() {
    check(
        Cause::HostMemory,
        &[
            "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
            "239.10GB / 251.60GB (0.950), which exceeds the memory usage threshold of 0.95.",
        ],
    );
    check(
        Cause::HostMemory,
        &["slurmstepd: error: Detected 1 oom_kill event in StepId=1234.0."],
    );
    check(
        Cause::HostMemory,
        &["Out of memory: Killed process 12345 (python) total-vm:98765432kB"],
    );
    check(
        Cause::HostMemory,
        &["Last State: Terminated\n  Reason: OOMKilled\n  Exit Code: 137"],
    );
}

#[test]
fn printed_memory_shows_a_leak_or_its_absence() {
    let log = |gb: fn(u32) -> f64| -> String {
        let line = |epoch| {
            format!(
                "GPU Memory - Allocated: {:.2}GB, Cached: 29.00GB\n",
                gb(epoch)
            )
        };
        (0..58).map(line).collect()
    };
    check(
        Cause::Leak,
        &[&log(|epoch| 2.0 + 0.5 * f64::from(epoch)), NEW],
    );
    check(Cause::Leak, &[&log(|epoch| 2.0 + 0.5 * f64::from(epoch))]);
    check(
        Cause::Outlier,
        &[&log(|epoch| 2.0 + 0.01 * f64::from(epoch % 3)), NEW],
    );
}

#[test]
fn failures_that_repeat_are_of_one_size() {
    let run =
        |step: u32| format!("Training:  17%|█▋  | {step}/487 [00:22<01:31,  4.4it/s]\n{NEW}\n");
    check(Cause::Outlier, &[&run(82), &run(82), &run(82)]);
    check(Cause::Capacity, &[&run(0), &run(0)]);
}

#[test]
fn a_table_alone_names_who_fills_the_gpu() {
    let card = |index: u32, used: u32| {
        format!(
            "|   {index}  NVIDIA A100-SXM4-40GB          On  |   00000000:07:00.0 Off |                    0 |\n\
             | N/A   31C    P0              56W / 400W |  {used}MiB / 40960MiB   |      0%      Default |\n"
        )
    };
    let process = |pid: u32| {
        format!("|    0   N/A  N/A      {pid}      C   python train.py            19000MiB   |\n")
    };
    check(
        Cause::OtherProcess,
        &[&card(0, 39500), &process(1), &process(2)],
    );
    check(
        Cause::WrongDevice,
        &[&card(0, 39500), &card(1, 4), &process(1), &process(2)],
    );
    check(Cause::Unknown, &[&card(0, 4), &card(1, 4)]);
}

#[test]
fn what_a_message_does_not_say_is_not_shown() {
    for text in [
        "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.64 GiB total capacity; 1.10 GiB free)",
        "CUDA out of memory",
    ] {
        let found = diagnose(&Findings::parse(text).unwrap(), None);
        assert!(
            found.evidence.iter().all(|line| !line.contains("0 B")),
            "{found:#?}"
        );
    }
}

#[test]
fn a_known_leak_is_named_with_its_epoch() {
    let expected = PredictedUsage {
        peak: Bytes::gib(2.0),
        between_steps: Bytes::gib(1.5),
        eval_every: 0,
        save_every: 0,
        replayed: None,
        uneven: None,
        recognized: None,
        typical: None,
        varies: false,
        growth: Some(Growing {
            per_epoch: Bytes::gib(0.5),
            full_in: Some(58),
        }),
    };
    let text = format!("Epoch 57: 33%|███ | 100/300 [00:10<00:20]\n{NEW}");
    let found = diagnose(&Findings::parse(&text).unwrap(), Some(expected));
    assert_eq!(
        (found.cause, found.changes.first()),
        (Cause::Leak, Some(&Change::ResetMetrics))
    );
    assert!(
        found.evidence[0].contains("epoch 58") && found.confidence > 0.9,
        "{found:#?}"
    );
}
