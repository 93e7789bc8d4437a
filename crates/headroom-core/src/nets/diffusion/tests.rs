//! Peaks of diffusers' classes with fewer blocks, on a bookkeeping GPU (diffusers 0.42, PyTorch 2.15): two samples, checkpointed
//! blocks, AdamW.

use crate::estimate::{estimate, quick_peak};
use headroom_scenario::{Scenario, settings};

/// Model, its blocks, frames, height, width, tokens of the text, precision, what is trained, and the peak.
const PEAKS: &str = "
    wan2.2-ti2v-5b          layers=4                  49  480  832  512  bf16              all       10306073088
    wan2.2-ti2v-5b          layers=4                  49  480  832  512  amp-bf16-on-bf16  adapters   5678628352
    wan2.1-i2v-14b          layers=4                  33  256  448  512  bf16              all       18611540992
    wan2.1-i2v-14b          layers=4                  33  256  448  512  amp-bf16-on-bf16  adapters   7432916992
    flux.1-kontext-dev      layers=4,single_layers=4   1  768 1344  512  bf16              all       19911795200
    flux.1-kontext-dev      layers=4,single_layers=4   1  768 1344  512  amp-bf16-on-bf16  adapters   9494531072
    z-image                 layers=4                   1  768 1344  200  bf16              all       14594342400
    z-image                 layers=4                   1  768 1344  200  amp-bf16-on-bf16  adapters   6134167552
    hunyuanvideo            layers=4,single_layers=4  33  320  512  256  bf16              all       22874494976
    hunyuanvideo            layers=4,single_layers=4  33  320  512  256  amp-bf16-on-bf16  adapters   7908270592
    flux.2-dev              layers=3,single_layers=4   1  768 1344  512  bf16              all       57270786048
    flux.2-dev              layers=3,single_layers=4   1  768 1344  512  amp-bf16-on-bf16  adapters  17235738112
    qwen-image-edit         layers=4                   1  768 1344  256  bf16              all       13666941440
    qwen-image-edit-2511    layers=4                   1  768 1344  256  amp-bf16-on-bf16  adapters   7516623872
    cogvideox-5b            layers=4                  49  480  720  226  amp-bf16-on-bf16  adapters   8606895616
    ltx-video-13b           layers=4                 121  704 1216  128  bf16              all       17719822336
    sd3.5-large             layers=4                   1  768 1344  333  bf16              all        8464543744
    sd3.5-large             layers=4                   1  768 1344  333  amp-bf16-on-bf16  adapters   3419892736
    pixart-sigma-xl-2-1024  layers=4                   1  768 1344  300  bf16              all        1303280640
    chroma1-hd              layers=3,single_layers=4   1  768 1344  512  bf16              all       14250240000
    chroma1-hd              layers=3,single_layers=4   1  768 1344  512  amp-bf16-on-bf16  adapters   5637740032
    sana-1.6b               layers=4                   1  768 1344  300  bf16              all        3642753536
    sana-1.6b               layers=4                   1  768 1344  300  amp-bf16-on-bf16  adapters   1232430592
    lumina-image-2.0        layers=4                   1  768 1344  200  bf16              all       10979275776
    cogview4-6b             layers=4                   1  768 1344  224  bf16              all        9317588480
    cogview4-6b             layers=4                   1  768 1344  224  amp-bf16-on-bf16  adapters   4253588480
    hunyuanvideo-1.5        layers=4                  33  480  640  300  bf16              all        9433372672
    hunyuanvideo-1.5        layers=4                  33  480  640  300  amp-bf16-on-bf16  adapters   5705223168
    mochi-1                 layers=4                  25  480  640  256  bf16              all       11143399424
    mochi-1                 layers=4                  25  480  640  256  amp-bf16-on-bf16  adapters   5711452672
";

/// The same without checkpointing.
const KEPT: &str = "
    cogview4-6b             layers=4                   1  768 1344  224  bf16              all       12636950528
    hunyuanimage-2.1        layers=2,single_layers=3   1 1024 1536  200  bf16              all       19741002752
    hunyuanimage-2.1        layers=2,single_layers=3   1 1024 1536  200  amp-bf16-on-bf16  adapters   7170045440
    hunyuanvideo-1.5        layers=4                  33  480  640  300  bf16              all       18965613056
    mochi-1                 layers=4                  25  480  640  256  bf16              all       20621752320
";

#[test]
fn peaks_are_those_of_the_classes() {
    for (rows, checkpointing) in [(PEAKS, "layers"), (KEPT, "none")] {
        for row in rows.lines().filter(|line| !line.trim().is_empty()) {
            check(row, checkpointing);
        }
    }
}

#[track_caller]
fn check(row: &str, checkpointing: &str) {
    let cells: Vec<&str> = row.split_whitespace().collect();
    let [
        model,
        dims,
        frames,
        height,
        width,
        words,
        precision,
        trained,
        peak,
    ] = cells[..]
    else {
        panic!("{row}");
    };
    let dims = format!("{dims},ctx_len={words}");
    let mut scenario = Scenario::default();
    let adapters = if trained == "adapters" { "on" } else { "off" };
    for (name, value) in [
        ("model", model),
        ("dims", &dims),
        ("mb", "2"),
        ("frames", frames),
        ("height", height),
        ("width", width),
        ("precision", precision),
        ("ckpt", checkpointing),
        ("lora", adapters),
    ] {
        settings::set(&mut scenario, name, value).unwrap();
    }
    if trained == "adapters" {
        settings::set(&mut scenario, "lora_targets", "to_q,to_k,to_v,to_out.0").unwrap();
    }
    let predicted = estimate(&scenario).unwrap().allocated.expected.get() as f64;
    let recorded: f64 = peak.parse().unwrap();
    // Large blocks depend on the order of requests.
    assert!(
        (predicted / recorded - 1.0).abs() < 0.01,
        "{row}: {predicted}"
    );
}

/// Swapped blocks leave the GPU with their weights and nothing else.
#[test]
fn swapped_blocks_take_their_weights_off_the_gpu() {
    let mut run = Scenario::default();
    for (name, value) in [
        ("model", "wan2.1-t2v-1.3b"),
        ("mb", "1"),
        ("frames", "17"),
        ("height", "256"),
        ("width", "448"),
        ("precision", "amp-bf16-on-bf16"),
        ("ckpt", "layers"),
        ("lora_targets", "to_q,to_k,to_v,to_out.0"),
    ] {
        settings::set(&mut run, name, value).unwrap();
    }
    let whole = quick_peak(&run).unwrap().get();
    settings::set(&mut run, "swap", "10").unwrap();
    let swapped = quick_peak(&run).unwrap().get();
    // Eight square matrices of attention and two of the feed-forward part, in bf16.
    let block = 2 * (8 * 1536 * 1536 + 2 * 1536 * 8960);
    let off = (whole - swapped) as f64 / (10.0 * f64::from(block));
    assert!((off - 1.0).abs() < 0.01, "{off}");
}
