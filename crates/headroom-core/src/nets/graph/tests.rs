use std::rc::Rc;

use super::{Graph, Net, net, read, shipped};
use crate::allocator::Settings;
use crate::allocator::counting::take_count;
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

/// A tensor of the batch that requires a gradient.
const LEAF: &str = include_str!("fixtures/leaf.json");
/// An equation's residual: a gradient to the batch's own tensor within the loss, which the loss goes through (`create_graph`).
const RESIDUAL: &str = include_str!("fixtures/residual.json");
/// An index by two tensors that broadcast.
const BROADCAST: &str = include_str!("fixtures/broadcast.json");
/// A discriminator's `backward()` inside the loss of its generator, which is what the model returns.
const INNER: &str = include_str!("fixtures/inner.json");

fn peak(graph: impl Into<Rc<Graph>>, batch: u64, length: u64, precision: Precision) -> Option<u64> {
    peak_of(net(graph.into()), batch, length, plain(precision))
}

fn plain(precision: Precision) -> Training {
    Training {
        precision,
        checkpointing: Checkpointing::None,
        ..Training::default()
    }
}

/// The forward function of a network that no recording stands for, with pictures of so many pixels a side if it has such.
fn forward(id: &str, side: u64) -> Box<dyn Net> {
    let entry = headroom_catalog::model(id).unwrap();
    let mut sizes = Sizes::from_entry(entry);
    // Of models that read pictures in texts the length is that of the text.
    let reads = entry.category == headroom_catalog::ModelCategory::VisionLanguage;
    if entry.size("img").is_some() && !reads {
        sizes.extend(&[("img".to_string(), side)].into());
    }
    nets::build(entry.arch, &sizes).unwrap()
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
    check(LEAF, 16, 2048, Precision::Fp32, 269_225_984);
    check(LEAF, 16, 2048, Precision::AmpBf16, 252_579_840);
    check(LEAF, 16, 2048, Precision::Bf16, 218_499_584);
    check(RESIDUAL, 16, 2048, Precision::Fp32, 378_549_760);
    check(RESIDUAL, 16, 2048, Precision::AmpBf16, 198_390_272);
    check(RESIDUAL, 16, 2048, Precision::Bf16, 189_276_672);
    check(BROADCAST, 1024, 48, Precision::Fp32, 316_671_488);
    check(BROADCAST, 1024, 48, Precision::AmpBf16, 316_671_488);
}

/// Peaks of PyTorch 2.15 on a bookkeeping GPU with timm 1.0, torchvision 0.29, transformers 5.23 and diffusers 0.42, at sizes that
/// were not recorded or that were. Columns: the model, its batch and length, what part of the peak the prediction may be off, and
/// peaks in fp32, under autocast and in bf16.
const SHIPPED: &str = "
    depth-anything-small         3    392  200    1512565760    1076413440
    depth-anything-small         1    700  200    1579090944    1133436416
    dpt-large                    1    512  200    6860001280    6863216640
    grounding-dino-base          2    640  500   13628852736   11269742080
    grounding-dino-base          3    480  500   12540193792   10663547392
    maxvit-t                     2    384  120    2223693824    1426079232
    maxvit-t                    16    224  200    5264209408    3010277888
    owlv2-base-patch16-ensemble  2    768  200    5734666752    4541009920
    rtdetr-r50vd                 2    640  400    2250124800    2389477888
    rtdetr-r50vd                 4    480  400    2666148864    2771641344
    densenet-121                 4    224   60     641038336     395299328     327082496
    densenet-121                16    160   60    1189265920     674578432     604704768
    inception-v3                 8    299   60    1119477248     789657088     581404672
    maxvit-t                     4    224   60    1633980416    1104188928     820001280
    xlnet-base-cased             8    384   60    6501776384    5440749056    3583649792
    longformer-base-4096         2   2048   60   10865850880    8336409600    6260456448
    patchtst-etth1              64    512   60     614642176     409800192     342980608
    mamba2-130m                  2   2048   60   27119724544   20066179072   25232778752
    schnet-128-3                32     20   60     113393664      97496064      60125184
    segformer-b0                 4    384   60    1799191552    1528379392     908147200
    faster-rcnn-r50-fpn          2    640   60    2346296320    1568249856    1198245888
    sd-vae-kl-f8                 1    512   60   10313679360    9029058560    5166355968
    layoutlm-base-uncased        4    512  200    2660093440    2429453824
    layoutlmv3-base              4    256  200    4306263040    3904677376
    wav2vec2-base                4 160000  200    3845118464    3206658560
    hubert-base-ls960            4 160000  200    3845118464    3195630080
    wavlm-base                   4 160000  200    5423592960    4333313024
    beit-base-p16-224-hf         4    224  200    1740925440    1738097152
    swin-tiny-hf                 2    224  200     628873216     581164032
    mask2former-swin-tiny        4    384  100    4676068864    3916964864
    evoformer-48                 1    256  200    8654122496    7109281280
    nequip-l1-32                 2     48  200     214146048     122838528
    nequip-l2-32                 8     20  200     541398528     299960320
    resnet-50-hf                 4    256  200     819259392     637710848
    convnext-tiny-hf             2    224  200     641445376     579214848
    rwkv-4-169m                  4   1024  200    8519644160    7903044096
    phi-3.5-moe                  2    512  200  837473571328  837473571328
    depth-anything-small         4    518 1000    3109547008    2043652608
    dpt-large                    2    384 1000    6897512448    6883491840
    owlv2-base-patch16-ensemble  3    960 1000   10572488704    7590204416
    trocr-base                   3    128 1000    6746068992    6751492608
    clap-htsat-unfused           3    128 1000    3091468288    3099332608
    blip2-opt-2.7b               3    128 1000   76048119296   75875742208
    yolos-tiny                   2    512 1000     439002112     323611136
    siglip2-base-naflex          2    256 1000    7520156160    7516879360
    speecht5-tts                 2    256  250    2927362048    2921201664
";

#[test]
fn shipped_graphs_reach_the_peaks_of_the_real_models() {
    let precisions = [Precision::Fp32, Precision::AmpBf16, Precision::Bf16];
    for line in SHIPPED.trim().lines() {
        let mut words = line.split_whitespace();
        let id = words.next().unwrap();
        let numbers: Vec<u64> = words.map(|word| word.parse().unwrap()).collect();
        let [batch, length, part, ref peaks @ ..] = numbers[..] else {
            panic!("{line}")
        };
        for (precision, &expected) in precisions.into_iter().zip(peaks) {
            let peak = match shipped(id) {
                Some(graph) => peak(graph, batch, length, precision),
                None => peak_of(forward(id, length), batch, length, plain(precision)),
            };
            let peak = peak.unwrap();
            assert!(peak.abs_diff(expected) <= expected / part, "{line}: {peak}");
        }
    }
}

/// Equal layers are written once.
#[cfg(feature = "files")]
#[test]
fn a_model_of_many_layers_is_a_small_file() {
    use std::io::Read;
    let packed: &[u8] = include_bytes!("../../../../../catalog/graphs/phi-3.5-moe.json.gz");
    let mut text = String::new();
    let mut file = flate2::read::GzDecoder::new(packed);
    file.read_to_string(&mut text).unwrap();
    assert!(text.len() <= 100_000, "{}", text.len());
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
            assert!(runs(Precision::Bf16), "{} at {length}", entry.id);
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
    // Files of an earlier recorder do not say what the model returns.
    let keeping = || Training {
        precision: Precision::Fp32,
        keep_outputs: true,
        ..Training::default()
    };
    let kept = |file| peak_of(net(Rc::new(read(file).unwrap())), 16, 64, keeping());
    assert_eq!(kept(FIXTURE), None);
    assert!(kept(INNER) > peak(read(INNER).unwrap(), 16, 64, Precision::Fp32));
}

#[test]
fn what_is_wrong_with_a_file_is_said() {
    #[track_caller]
    fn check(file: &str, expected: &str) {
        let problem = read(file).unwrap_err();
        assert!(problem.contains(expected), "{problem}");
    }
    check("{}", "lacks `headroom`");
    check(
        &LEAF.replace("\"headroom\":3", "\"headroom\":4"),
        "format 4 is not known",
    );
    for part in ["params", "scopes", "programs", "steps", "types", "example"] {
        let named = format!("\"{part}\":");
        let damaged = LEAF.replacen(&named, &format!("{named}0,\"{part}2\":"), 1);
        check(&damaged, &format!("`{part}`"));
    }
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
    let problem = read(&half(file(7))).unwrap_err();
    assert!(problem.contains("is too long"), "{problem}");
}

/// Files that someone altered: refused, or run with bounded work; never a panic. `HEADROOM_ALTERED=100000` tries so many.
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
        take_count();
        if let Ok(graph) = read(&text) {
            ran += usize::from(peak(graph, 4, 64, Precision::Fp32).is_some());
        }
        // A memory request for each tensor that the run made.
        let requests = take_count();
        assert!(requests < 2_000_000, "{n}: {requests} requests");
    }
    assert!(ran > 10, "{ran}");
}
