use std::rc::Rc;
use std::time::{Duration, Instant};

use super::{Graph, Net, net, read, shipped};
use crate::allocator::Settings;
use crate::estimate::Peaks;
use crate::nets::{self, Sizes};
use crate::step::{RunPlan, run};
use crate::tape::Machine;
use headroom_scenario::{Checkpointing, Data, Lora, Optimizer, Precision, Quantization, Training};

const FIXTURE: &str = include_str!("fixtures/conv_vae.json");
/// Reentrant checkpoints, `nn.RMSNorm`, a batch norm over transposed features, one token of many.
const NESTED: &str = include_str!("fixtures/nested.json");
/// Weights with `torch.nn.utils.spectral_norm`, and a table that the first call makes: attributes that outlive a step.
const LASTING: &str = include_str!("fixtures/lasting.json");
/// A GRU and an LSTM cell over many rows, a convolution over features that lie last, a part of a longer batch, CTC with lengths on
/// the host.
const CELLS: &str = include_str!("fixtures/cells.json");

fn peak(graph: Graph, batch: u64, length: u64, precision: Precision) -> Option<u64> {
    let training = Training {
        precision,
        checkpointing: Checkpointing::None,
        ..Training::default()
    };
    peak_of(net(Rc::new(graph)), batch, length, training)
}

fn peak_of(net: Box<dyn Net>, batch: u64, length: u64, training: Training) -> Option<u64> {
    let data = Data {
        micro_batch: batch,
        sequence: length,
        ..Data::default()
    };
    let training = Training {
        optimizer: Optimizer::AdamW,
        ..training
    };
    net.supports(&data, &training).ok()?;
    let run = run(
        &*net,
        &data,
        &training,
        Machine::default(),
        RunPlan::first_steps(3),
    );
    Some(
        Peaks::replayed(&run.trace, &Settings::default())
            .highest()?
            .bytes,
    )
}

/// Peaks of PyTorch 2.15 on a bookkeeping GPU, at batches that were not recorded.
#[track_caller]
fn check(file: &str, batch: u64, length: u64, precision: Precision, expected: u64) {
    let graph = read(file).unwrap();
    assert_eq!(peak(graph, batch, length, precision), Some(expected));
}

#[test]
fn a_recorded_model_has_the_peak_of_the_real_one() {
    check(FIXTURE, 16, 64, Precision::Fp32, 167_518_720);
    check(FIXTURE, 64, 64, Precision::AmpBf16, 272_072_192);
    check(FIXTURE, 256, 64, Precision::Bf16, 732_227_584);
    check(NESTED, 64, 256, Precision::Fp32, 133_508_096);
    check(NESTED, 64, 256, Precision::AmpBf16, 87_749_120);
    check(NESTED, 64, 256, Precision::Bf16, 79_450_624);
    check(LASTING, 32, 128, Precision::Fp32, 34_292_224);
    check(LASTING, 32, 128, Precision::AmpBf16, 23_281_664);
    check(LASTING, 32, 128, Precision::Bf16, 21_932_544);
    check(CELLS, 64, 512, Precision::Fp32, 363_833_856);
    check(CELLS, 64, 512, Precision::AmpBf16, 218_140_672);
    check(CELLS, 64, 512, Precision::Bf16, 215_478_272);
}

/// A shipped graph's peaks in fp32, under autocast and in bf16, as far as they are given, to such a part of them.
#[track_caller]
fn takes(id: &str, [batch, length]: [u64; 2], expected: &[u64], part: u64) {
    let precisions = [Precision::Fp32, Precision::AmpBf16, Precision::Bf16];
    for (precision, &expected) in precisions.into_iter().zip(expected) {
        let training = Training {
            precision,
            checkpointing: Checkpointing::None,
            ..Training::default()
        };
        let peak = peak_of(net(shipped(id).unwrap()), batch, length, training).unwrap();
        assert!(
            peak.abs_diff(expected) <= expected / part,
            "{id}: {peak} {expected}"
        );
    }
}

/// Peaks of PyTorch 2.15 on a bookkeeping GPU with timm 1.0, torchvision 0.29, transformers 5.23 and diffusers 0.42, at sizes that
/// were not recorded or that were.
#[test]
fn shipped_graphs_take_what_the_real_models_take() {
    #[track_caller]
    fn check(id: &str, batch: u64, length: u64, expected: [u64; 3]) {
        takes(id, [batch, length], &expected, 60);
    }
    check(
        "densenet-121",
        4,
        224,
        [641_038_336, 395_299_328, 327_082_496],
    );
    check(
        "densenet-121",
        16,
        160,
        [1_189_265_920, 674_578_432, 604_704_768],
    );
    check(
        "inception-v3",
        8,
        299,
        [1_119_477_248, 789_657_088, 581_404_672],
    );
    check(
        "maxvit-t",
        4,
        224,
        [1_633_980_416, 1_104_188_928, 820_001_280],
    );
    check(
        "xlnet-base-cased",
        8,
        384,
        [6_501_776_384, 5_440_749_056, 3_583_649_792],
    );
    check(
        "longformer-base-4096",
        2,
        2048,
        [10_865_850_880, 8_336_409_600, 6_260_456_448],
    );
    check(
        "patchtst-etth1",
        64,
        512,
        [614_642_176, 409_800_192, 342_980_608],
    );
    check(
        "mamba2-130m",
        2,
        2048,
        [27_119_724_544, 20_066_179_072, 25_232_778_752],
    );
    check(
        "schnet-128-3",
        32,
        20,
        [113_393_664, 97_496_064, 60_125_184],
    );
    check(
        "segformer-b0",
        4,
        384,
        [1_799_191_552, 1_528_379_392, 908_147_200],
    );
    check(
        "faster-rcnn-r50-fpn",
        2,
        640,
        [2_346_296_320, 1_568_249_856, 1_198_245_888],
    );
    check(
        "pixart-sigma-xl-2-1024",
        2,
        128,
        [32_231_832_064, 24_402_365_440, 16_209_111_040],
    );
    check(
        "sd-vae-kl-f8",
        1,
        512,
        [10_313_679_360, 9_029_058_560, 5_166_355_968],
    );
}

/// The same in fp32 and under autocast, within half a percent.
#[test]
fn shipped_graphs_of_transformers_and_of_atoms_take_what_the_real_models_take() {
    #[track_caller]
    fn check(id: &str, batch: u64, length: u64, expected: [u64; 2]) {
        takes(id, [batch, length], &expected, 200);
    }
    check(
        "layoutlm-base-uncased",
        4,
        512,
        [2_660_093_440, 2_429_453_824],
    );
    check("layoutlmv3-base", 4, 256, [4_306_263_040, 3_904_677_376]);
    check("wav2vec2-base", 4, 160_000, [3_845_118_464, 3_206_658_560]);
    check(
        "hubert-base-ls960",
        4,
        160_000,
        [3_845_118_464, 3_195_630_080],
    );
    check("wavlm-base", 4, 160_000, [5_423_592_960, 4_333_313_024]);
    check(
        "beit-base-p16-224-hf",
        4,
        224,
        [1_740_925_440, 1_738_097_152],
    );
    check("swin-tiny-hf", 2, 224, [628_873_216, 581_164_032]);
    check(
        "mask2former-swin-tiny",
        4,
        384,
        [4_676_068_864, 3_916_964_864],
    );
    check("evoformer-48", 1, 256, [8_654_122_496, 7_109_281_280]);
    check(
        "qwen3-next-80b-a3b",
        2,
        1024,
        [1_593_498_483_712, 1_593_498_483_712],
    );
    check("nequip-l1-32", 2, 48, [214_146_048, 122_838_528]);
    check("nequip-l2-32", 8, 20, [541_398_528, 299_960_320]);
    check("resnet-50-hf", 4, 256, [819_259_392, 637_710_848]);
    check("convnext-tiny-hf", 2, 224, [641_445_376, 579_214_848]);
    check("rwkv-4-169m", 4, 1024, [8_519_644_160, 7_903_044_096]);
    check("phi-3.5-moe", 2, 512, [837_473_571_328, 837_473_571_328]);
    check(
        "llama-3.2-11b-vision",
        2,
        512,
        [213_538_656_768, 213_682_120_192],
    );
}

/// Models that see, hear and read, in fp32 and under autocast, within a thousandth.
#[test]
fn shipped_graphs_of_pictures_and_speech_take_what_the_real_models_take() {
    #[track_caller]
    fn check(id: &str, batch: u64, length: u64, expected: [u64; 2]) {
        takes(id, [batch, length], &expected, 1000);
    }
    check(
        "depth-anything-small",
        4,
        518,
        [3_109_547_008, 2_043_652_608],
    );
    check("dpt-large", 2, 384, [6_897_512_448, 6_883_491_840]);
    check(
        "owlv2-base-patch16-ensemble",
        3,
        960,
        [10_572_488_704, 7_590_204_416],
    );
    check("lfm2-1.2b", 3, 1024, [27_968_657_408, 25_841_973_248]);
    check("trocr-base", 3, 128, [6_746_068_992, 6_751_492_608]);
    check("clap-htsat-unfused", 3, 128, [3_091_468_288, 3_099_332_608]);
    check("blip2-opt-2.7b", 3, 128, [76_048_119_296, 75_875_742_208]);
    check("yolos-tiny", 2, 512, [439_002_112, 323_611_136]);
    check(
        "siglip2-base-naflex",
        2,
        256,
        [7_520_156_160, 7_516_879_360],
    );
    check("speecht5-tts", 2, 256, [2_927_362_048, 2_921_201_664]);
}

/// Equal layers are written once.
#[cfg(feature = "files")]
#[test]
fn a_model_of_many_layers_is_a_small_file() {
    use std::io::Read;
    let files: [&[u8]; 2] = [
        include_bytes!("../../../../../catalog/graphs/command-r7b.json.gz"),
        include_bytes!("../../../../../catalog/graphs/phi-3.5-moe.json.gz"),
    ];
    for packed in files {
        let mut text = String::new();
        let mut file = flate2::read::GzDecoder::new(packed);
        file.read_to_string(&mut text).unwrap();
        assert!(text.len() <= 100_000, "{}", text.len());
    }
}

#[test]
fn every_shipped_graph_is_small_and_runs_where_it_was_recorded() {
    let recorded = headroom_catalog::models()
        .iter()
        .filter(|entry| !entry.graph.is_empty());
    let mut count = 0;
    for entry in recorded {
        let graph = shipped(entry.id).unwrap();
        let (batch, length) = graph.example().unwrap();
        let training = Training {
            precision: Precision::AmpBf16,
            checkpointing: Checkpointing::None,
            ..Training::default()
        };
        assert!(
            peak_of(net(graph), batch, length, training).is_some(),
            "{}",
            entry.id
        );
        // The length that the entry names, where it is a size of its own, is one that was recorded or can be computed.
        if let Some(length) = entry.size(entry.graph) {
            let runs = |precision| {
                let training = Training {
                    precision,
                    ..Training::default()
                };
                peak_of(net(shipped(entry.id).unwrap()), 2, length, training).is_some()
            };
            // Mask2Former samples its masks at points in fp32, RT-DETR its features, which PyTorch refuses for those in bf16.
            let precision = match entry.id {
                "mask2former-swin-tiny" | "rtdetr-r50vd" => Precision::AmpBf16,
                _ => Precision::Bf16,
            };
            assert!(runs(precision), "{} at {length}", entry.id);
        }
        count += 1;
    }
    assert!(count >= 40, "{count}");
}

#[test]
fn beyond_the_recorded_lengths_the_last_of_them_counts() {
    let mut document: serde_json::Value = serde_json::from_str(NESTED).unwrap();
    let programs = document["programs"].as_array_mut().unwrap();
    let one = serde_json::json!([1]);
    programs.retain(|program| program["precision"] == "fp32" && program["batches"] != one);
    let mut longer = programs[0].clone();
    longer["lengths"] = serde_json::json!([512]);
    programs.push(longer);
    let runs = |length| {
        let graph = read(&document.to_string()).unwrap();
        peak(graph, 8, length, Precision::Fp32).is_some()
    };
    // At 512 other operations run, of which nobody knows how they grow.
    assert_eq!([300, 512, 600].map(runs), [true, true, false]);
}

/// Of four layers, 256 wide, with 4 heads and 2 for keys.
const LLAMA: &str = include_str!("fixtures/llama.json");

/// The same model recorded and written by hand, under a method of training: apart by a few tensors of positions at most.
#[track_caller]
fn check_method(training: &Training) {
    const APART: u64 = 1 << 16;
    let sizes = [
        ("layers", 4),
        ("hidden", 256),
        ("heads", 4),
        ("kv", 2),
        ("head_dim", 64),
        ("ffn", 512),
        ("vocab", 4096),
    ];
    let mut by_hand = Sizes::default();
    for (name, size) in sizes {
        by_hand.set(name, size);
    }
    let by_hand = nets::build("llama", &by_hand).unwrap();
    let recorded = net(Rc::new(read(LLAMA).unwrap()));
    let [recorded, by_hand] = [recorded, by_hand].map(|net| peak_of(net, 3, 320, training.clone()));
    let (recorded, by_hand) = (recorded.unwrap(), by_hand.unwrap());
    assert!(recorded.abs_diff(by_hand) <= APART, "{recorded} {by_hand}");
}

#[test]
fn methods_change_a_recorded_model_as_one_by_hand() {
    let plain = |precision, checkpointing| Training {
        precision,
        checkpointing,
        ..Training::default()
    };
    let lora = |training| Training {
        lora: Some(Lora::default()),
        ..training
    };
    check_method(&plain(Precision::Fp32, Checkpointing::None));
    check_method(&plain(Precision::Fp32, Checkpointing::Layers));
    check_method(&lora(plain(Precision::Bf16, Checkpointing::None)));
    check_method(&lora(plain(Precision::Bf16, Checkpointing::Layers)));
    let frozen = Training {
        freeze: vec!["embed_tokens".into(), "mlp".into()],
        ..plain(Precision::Fp32, Checkpointing::None)
    };
    check_method(&frozen);
    let quantised = Training {
        quantization: Quantization::Nf4,
        ..lora(plain(Precision::Bf16, Checkpointing::None))
    };
    check_method(&quantised);
}

/// BERT of four layers, 64 wide: each ends with a norm, whose statistics are saved after it.
const BERT: &str = include_str!("fixtures/bert.json");

/// Peaks of PyTorch 2.15 on a bookkeeping GPU, without and with `gradient_checkpointing_enable()`.
#[test]
fn layers_that_end_with_a_norm_are_checkpointed() {
    #[track_caller]
    fn check(checkpointing: Checkpointing, expected: u64) {
        let training = Training {
            precision: Precision::Fp32,
            checkpointing,
            ..Training::default()
        };
        let bert = net(Rc::new(read(BERT).unwrap()));
        let peak = peak_of(bert, 16, 96, training).unwrap();
        assert!(peak.abs_diff(expected) <= 1 << 16, "{peak} {expected}");
    }
    check(Checkpointing::None, 43_683_328);
    check(Checkpointing::Layers, 25_447_936);
}

#[test]
fn what_was_not_recorded_is_refused() {
    let graph = || read(FIXTURE).unwrap();
    assert_eq!(peak(graph(), 16, 64, Precision::Fp64), None);
    let selective = Training {
        checkpointing: Checkpointing::KeepMatmuls,
        ..Training::default()
    };
    let llama = net(Rc::new(read(LLAMA).unwrap()));
    assert_eq!(peak_of(llama, 3, 320, selective), None);
    assert!(read("{}").is_err());
    assert!(read(&FIXTURE.replace("\"headroom\":2", "\"headroom\":4")).is_err());
}

/// Each program may stand for a million numbers; of many, squeezed to a few bytes each, no more are read than all together may be.
#[test]
fn programs_together_have_a_limit() {
    let long = r#"{"precision":"fp32","batches":[1],"lengths":[1],"ops":[],"types":[["float32",[]]],
        "steps":[1,1000000,1,8,[2,1999998],0,0,0,0,0,0,0,0]}"#;
    let file = |count: usize| {
        let programs = vec![long; count].join(",");
        format!(
            r#"{{"headroom":3,"name":"","source":"","torch":"","params":[],"scopes":[],"programs":[{programs}]}}"#
        )
    };
    assert!(read(&file(1)).is_err());
    let half = |text: String| {
        text.replace("1000000", "600000")
            .replace("1999998", "1199998")
    };
    assert_eq!(read(&half(file(1))).map(|_| ()), Ok(()));
    assert!(read(&half(file(7))).is_err());
}

/// Files that someone altered: refused, or run in bounded time; never a panic. `HEADROOM_ALTERED=100000` tries so many.
#[test]
fn altered_files_do_no_harm() {
    let mut random: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below.max(1) as u64) as usize
    };
    let numbers = [
        "9",
        "0",
        "1",
        "2",
        "7",
        "12",
        "150",
        "99999999999",
        "4294967295",
    ];
    let rest = [
        "-1",
        "]",
        "[",
        ",",
        "\"",
        "[1,1]",
        "null",
        "[1,500000]",
        "1e9",
        "{}",
        "true",
    ];
    let pieces = [&numbers[..], &rest[..]].concat();
    let asked = std::env::var("HEADROOM_ALTERED").ok();
    let count: usize = asked.map_or(400, |count| count.parse().unwrap());
    let files = [FIXTURE, NESTED, LLAMA, LASTING, CELLS];
    let mut ran = 0;
    for n in 0..count {
        let mut text = files[n % files.len()].to_string();
        for _ in 0..=next(3) {
            let at = next(text.len());
            // Mostly a number becomes another, so that the file still reads.
            let (at, end, piece) = match text[at..].find(|c: char| c.is_ascii_digit()) {
                Some(away) if next(4) > 0 => (at + away, at + away + 1, next(numbers.len())),
                _ => (at, (at + next(3)).min(text.len()), next(pieces.len())),
            };
            text.replace_range(at..end, pieces[piece]);
        }
        let start = Instant::now();
        if let Ok(graph) = read(&text) {
            ran += usize::from(peak(graph, 4, 64, Precision::Fp32).is_some());
        }
        let took = start.elapsed();
        assert!(took < LONGEST, "{n} took {took:?}");
    }
    assert!(ran > 10, "{ran}");
}

/// The longest that a file may keep a machine that is busy with other tests.
const LONGEST: Duration = Duration::from_secs(2);
