//! Peaks of hybrids in plain PyTorch (PyTorch 2.15, transformers 5.23 on a bookkeeping GPU with expandable segments): two steps of
//! SGD, or of AdamW with checkpointed layers.

use crate::nets::recorded::{Case, sizes, training};
use headroom_scenario::{Checkpointing, Optimizer, Precision, Training};

const DENSE: &str = "hidden=512 layers=7 heads=8 kv=2 head_dim=64 ffn=1536 vocab=8064 m_heads=16 m_head_dim=64 m_state=64 \
                     m_groups=4 m_chunk=128 full_0=8 mlp_0=82";
const EXPERTS: &str = "hidden=512 layers=6 heads=8 kv=2 head_dim=64 ffn=512 vocab=8064 m_heads=16 m_head_dim=64 m_state=64 \
                       m_groups=4 m_chunk=128 full_0=16 mlp_0=0 moe_0=42 experts=8 topk=2 moe_ffn=384 shared_ffn=768";
const BAMBA: &str = "hidden=512 layers=4 heads=8 kv=2 head_dim=64 rotary=32 ffn=1536 vocab=8064 m_heads=16 m_head_dim=64 \
                     m_state=64 m_groups=1 m_chunk=256 full_0=4";

/// With 512 tokens of two samples and 300 of three, first without checkpointing.
#[track_caller]
fn peaks(name: &str, network: &str, precision: Precision, recorded: [u64; 4]) {
    let runs = [
        (2, 512, Optimizer::Sgd, Checkpointing::None),
        (3, 300, Optimizer::Sgd, Checkpointing::None),
        (2, 512, Optimizer::AdamW, Checkpointing::Layers),
        (3, 300, Optimizer::AdamW, Checkpointing::Layers),
    ];
    for ((batch, sequence, optimizer, checkpointing), recorded) in runs.into_iter().zip(recorded) {
        let training = Training {
            checkpointing,
            ..training(precision, optimizer)
        };
        let case = Case::new(name, &sizes(network)).batch(batch, sequence);
        let (peak, _) = case.trained(&training).peak();
        let off = peak.abs_diff(recorded);
        // One size is two small sums of a mixer above what was recorded.
        let amp = precision == Precision::AmpBf16 && checkpointing == Checkpointing::Layers;
        let most = if amp { 128 << 10 } else { 0 };
        assert!(off <= most, "{network}: {peak} bytes, recorded {recorded}");
    }
}

#[test]
fn nemotron_h_is_one_part_a_layer() {
    let plain = [512_172_032, 508_575_744, 269_595_648, 280_442_880];
    peaks("nemotron_h", DENSE, Precision::Bf16, plain);
    let amp = [518_943_744, 503_747_072, 399_366_144, 406_570_496];
    peaks("nemotron_h", DENSE, Precision::AmpBf16, amp);
}

#[test]
fn nemotron_3_has_experts_without_gates() {
    let plain = [432_961_536, 422_319_104, 311_493_120, 322_340_352];
    peaks("nemotron_h", EXPERTS, Precision::Bf16, plain);
    let amp = [478_688_256, 458_332_160, 488_614_400, 490_370_048];
    peaks("nemotron_h", EXPERTS, Precision::AmpBf16, amp);
    let latent = format!("{EXPERTS} latent=256");
    let plain = [420_378_624, 410_307_584, 280_035_840, 290_883_072];
    peaks("nemotron_h", &latent, Precision::Bf16, plain);
    let amp = [456_668_160, 437_264_384, 420_251_136, 427_455_488];
    peaks("nemotron_h", &latent, Precision::AmpBf16, amp);
}

#[test]
fn bamba_is_llama_with_mamba() {
    let plain = [613_511_168, 721_999_360, 331_950_080, 377_908_224];
    peaks("bamba", BAMBA, Precision::Bf16, plain);
    let amp = [609_593_344, 667_768_320, 479_564_800, 527_459_840];
    peaks("bamba", BAMBA, Precision::AmpBf16, amp);
}
