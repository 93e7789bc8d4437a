//! SimpleTuner's model families: the flavour that each has without one given, and where its weights are
//! (`simpletuner/helpers/models/*/model.py`, August 2026).

use crate::fact::Fact;
use crate::words::Attention;

struct Family {
    name: &'static str,
    /// The default; empty where there is none.
    flavour: &'static str,
    video: bool,
    paths: &'static [(&'static str, &'static str)],
}

/// Every family's flavours with the place of their weights.
pub fn flavours() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> + Clone {
    FAMILIES.iter().flat_map(|family| {
        let paths = family.paths.iter();
        paths.map(|(flavour, path)| (family.name, *flavour, *path))
    })
}

/// The model of a family's flavour.
pub fn model(family: &Fact<String>, flavour: &Fact<String>) -> Fact<String> {
    let Fact::Known { value: name, .. } = family else {
        return family.clone();
    };
    let name = match name.as_str() {
        // Their older names.
        "cosmos" => "cosmos2image",
        "pixart" => "pixart_sigma",
        "kandinsky5_image" => "kandinsky5-image",
        "kandinsky5_video" => "kandinsky5-video",
        other => other,
    };
    let Some(known) = FAMILIES.iter().find(|family| family.name == name) else {
        return Fact::Unknown(format!("model_family {name} is not known"));
    };
    let wanted = match flavour {
        Fact::Unknown(why) => return Fact::Unknown(why.clone()),
        Fact::Unsaid => known.flavour,
        Fact::Known { value, .. } => value,
    };
    let path = known.paths.iter().find(|(name, _)| *name == wanted);
    match path {
        Some((_, path)) if flavour.is_known() => Fact::read((*path).into(), "model_flavour"),
        Some((_, path)) => Fact::default_of((*path).into(), "SimpleTuner's model_family"),
        None => Fact::follows(format!("{name} {wanted}"), "model_family"),
    }
}

pub fn is_video(family: &str) -> bool {
    FAMILIES
        .iter()
        .any(|known| known.name == family && known.video)
}

/// `attention_mechanism`.
pub fn attention(name: &Fact<String>) -> Fact<Attention> {
    name.clone().and_then(|name| {
        Some(match name.as_str() {
            "diffusers" | "sdpa" => Attention::Sdpa,
            "xformers" => Attention::Xformers,
            name if name.contains("flash") => Attention::Flash,
            _ => return None,
        })
    })
}

#[rustfmt::skip]
const FAMILIES: &[Family] = &[
    Family { name: "anima", flavour: "preview-3", video: false, paths: &[
        ("release", "circlestone-labs/Anima-Base-v1.0-Diffusers"),
        ("base-v1.0", "circlestone-labs/Anima-Base-v1.0-Diffusers"),
        ("preview-3", "CalamitousFelicitousness/Anima-Preview-3-sdnext-diffusers"),
        ("preview-2", "CalamitousFelicitousness/Anima-Preview-2-sdnext-diffusers"),
        ("preview", "CalamitousFelicitousness/Anima-sdnext-diffusers"),
        ("gazingstars123-2.9b", "Gazingstars123/Anima-2.9B"),
    ] },
    Family { name: "auraflow", flavour: "v0.3", video: false, paths: &[
        ("pony", "purplesmartai/pony-v7-base"),
        ("v0.3", "terminusresearch/auraflow-v0.3"),
        ("v0.2", "fal/AuraFlow-v0.2"),
        ("v0.1", "fal/AuraFlow"),
    ] },
    Family { name: "boogu_image", flavour: "v0.1-turbo", video: false, paths: &[
        ("v0.1-base", "SimpleTuner/Boogu-Image-0.1-Base"),
        ("v0.1-base-fp8", "SimpleTuner/Boogu-Image-0.1-Base"),
        ("v0.1-turbo", "SimpleTuner/Boogu-Image-0.1-Turbo"),
        ("v0.1-turbo-fp8", "SimpleTuner/Boogu-Image-0.1-Turbo"),
        ("v0.1-edit", "SimpleTuner/Boogu-Image-0.1-Edit"),
        ("v0.1-edit-fp8", "SimpleTuner/Boogu-Image-0.1-Edit"),
    ] },
    Family { name: "bria", flavour: "v3.2", video: false, paths: &[
        ("v3.2", "briaai/BRIA-3.2"),
    ] },
    Family { name: "chroma", flavour: "base", video: false, paths: &[
        ("base", "lodestones/Chroma1-Base"),
        ("hd", "lodestones/Chroma1-HD"),
        ("flash", "lodestones/Chroma1-Flash"),
    ] },
    Family { name: "cosmos2image", flavour: "2b", video: false, paths: &[
        ("2b", "nvidia/Cosmos-Predict2-2B-Text2Image"),
        ("14b", "nvidia/Cosmos-Predict2-14B-Text2Image"),
    ] },
    Family { name: "cosmos3", flavour: "nano", video: false, paths: &[
        ("edge", "nvidia/Cosmos3-Edge"),
        ("nano", "nvidia/Cosmos3-Nano"),
        ("super", "nvidia/Cosmos3-Super"),
        ("super-i2v", "nvidia/Cosmos3-Super-Image2Video"),
        ("super-t2i", "nvidia/Cosmos3-Super-Text2Image"),
    ] },
    Family { name: "deepfloyd", flavour: "", video: false, paths: &[
        ("i-medium-400m", "DeepFloyd/IF-I-M-v1.0"),
        ("i-large-900m", "DeepFloyd/IF-I-L-v1.0"),
        ("i-xlarge-4.3b", "DeepFloyd/IF-I-XL-v1.0"),
        ("ii-medium-450m", "DeepFloyd/IF-II-M-v1.0"),
        ("ii-large-1.2b", "DeepFloyd/IF-II-L-v1.0"),
    ] },
    Family { name: "ernie", flavour: "base", video: false, paths: &[
        ("base", "baidu/ERNIE-Image"),
        ("turbo", "baidu/ERNIE-Image-Turbo"),
    ] },
    Family { name: "flux", flavour: "krea", video: false, paths: &[
        ("dev", "black-forest-labs/flux.1-dev"),
        ("krea", "black-forest-labs/flux.1-krea-dev"),
        ("schnell", "black-forest-labs/flux.1-schnell"),
        ("kontext", "black-forest-labs/flux.1-kontext-dev"),
        ("fluxbooru", "terminusresearch/fluxbooru-v0.3"),
        ("libreflux", "jimmycarter/LibreFlux-SimpleTuner"),
    ] },
    Family { name: "flux2", flavour: "klein-9b", video: false, paths: &[
        ("dev", "black-forest-labs/FLUX.2-dev"),
        ("klein-4b", "black-forest-labs/FLUX.2-klein-base-4B"),
        ("klein-9b", "black-forest-labs/FLUX.2-klein-base-9B"),
    ] },
    Family { name: "hidream", flavour: "full", video: false, paths: &[
        ("dev", "HiDream-ai/HiDream-I1-Dev"),
        ("full", "HiDream-ai/HiDream-I1-Full"),
        ("fast", "HiDream-ai/HiDream-I1-Fast"),
    ] },
    Family { name: "hunyuanvideo", flavour: "t2v-480p", video: true, paths: &[
        ("t2v-480p", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v"),
        ("t2v-720p", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-720p_t2v"),
        ("t2v-480p-distilled", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_t2v_distilled"),
        ("i2v-480p", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_i2v"),
        ("i2v-720p", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-720p_i2v"),
        ("i2v-480p-distilled", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-480p_i2v_distilled"),
        ("i2v-720p-distilled", "hunyuanvideo-community/HunyuanVideo-1.5-Diffusers-720p_i2v_distilled"),
    ] },
    Family { name: "ideogram", flavour: "fp8", video: false, paths: &[
        ("fp8", "ideogram-ai/ideogram-4-fp8"),
        ("nf4", "ideogram-ai/ideogram-4-nf4"),
    ] },
    Family { name: "infinitetalk", flavour: "single-14b-480p", video: true, paths: &[
        ("single-14b-480p", "Wan-AI/Wan2.1-I2V-14B-480P-Diffusers"),
    ] },
    Family { name: "kandinsky5-image", flavour: "t2i-lite-sft", video: false, paths: &[
        ("t2i-lite-sft", "kandinskylab/Kandinsky-5.0-T2I-Lite-sft-Diffusers"),
        ("t2i-lite-pretrain", "kandinskylab/Kandinsky-5.0-T2I-Lite-pretrain-Diffusers"),
        ("i2i-lite-sft", "kandinskylab/Kandinsky-5.0-I2I-Lite-sft-Diffusers"),
        ("i2i-lite-pretrain", "kandinskylab/Kandinsky-5.0-I2I-Lite-pretrain-Diffusers"),
    ] },
    Family { name: "kandinsky5-video", flavour: "t2v-lite-sft-5s", video: true, paths: &[
        ("t2v-lite-sft-5s", "kandinskylab/Kandinsky-5.0-T2V-Lite-sft-5s-Diffusers"),
        ("t2v-lite-pretrain-5s", "kandinskylab/Kandinsky-5.0-T2V-Lite-pretrain-5s-Diffusers"),
        ("t2v-lite-sft-10s", "kandinskylab/Kandinsky-5.0-T2V-Lite-sft-10s-Diffusers"),
        ("t2v-lite-pretrain-10s", "kandinskylab/Kandinsky-5.0-T2V-Lite-pretrain-10s-Diffusers"),
        ("t2v-pro-sft-5s-hd", "kandinskylab/Kandinsky-5.0-T2V-Pro-sft-5s-Diffusers"),
        ("t2v-pro-sft-10s-hd", "kandinskylab/Kandinsky-5.0-T2V-Pro-sft-10s-Diffusers"),
        ("t2v-pro-pretrain-5s-hd", "kandinskylab/Kandinsky-5.0-T2V-Pro-pretrain-5s-Diffusers"),
        ("t2v-pro-pretrain-10s-hd", "kandinskylab/Kandinsky-5.0-T2V-Pro-pretrain-10s-Diffusers"),
        ("i2v-lite-5s", "kandinskylab/Kandinsky-5.0-I2V-Lite-5s-Diffusers"),
        ("i2v-pro-sft-5s", "kandinskylab/Kandinsky-5.0-I2V-Pro-sft-5s-Diffusers"),
    ] },
    Family { name: "kolors", flavour: "1.0", video: false, paths: &[
        ("1.0", "terminusresearch/kwai-kolors-1.0"),
    ] },
    Family { name: "krea2", flavour: "raw", video: false, paths: &[
        ("raw", "krea/Krea-2-Raw"),
        ("turbo", "krea/Krea-2-Turbo"),
    ] },
    Family { name: "longcat_image", flavour: "final", video: false, paths: &[
        ("final", "meituan-longcat/LongCat-Image"),
        ("dev", "meituan-longcat/LongCat-Image-Dev"),
        ("edit", "meituan-longcat/LongCat-Image-Edit"),
    ] },
    Family { name: "longcat_video", flavour: "final", video: true, paths: &[
        ("final", "meituan-longcat/LongCat-Video"),
    ] },
    Family { name: "ltxvideo", flavour: "0.9.5", video: true, paths: &[
        ("0.9.5", "Lightricks/LTX-Video-0.9.5"),
        ("0.9.0", "Lightricks/LTX-Video"),
    ] },
    Family { name: "ltxvideo2", flavour: "dev", video: true, paths: &[
        ("dev", "Lightricks/LTX-2"),
        ("dev-fp4", "Lightricks/LTX-2"),
        ("dev-fp8", "Lightricks/LTX-2"),
        ("2.3-dev", "dg845/LTX-2.3-Diffusers"),
        ("2.3-distilled", "dg845/LTX-2.3-Distilled-Diffusers"),
        ("2.5-dev", "Lightricks/LTX-2.5"),
        ("2.5-distilled", "Lightricks/LTX-2.5"),
    ] },
    Family { name: "lumina2", flavour: "2.0", video: false, paths: &[
        ("2.0", "Alpha-VLLM/Lumina-Image-2.0"),
        ("neta-lumina", "terminusresearch/neta-lumina-v1"),
    ] },
    Family { name: "mageflow", flavour: "base", video: false, paths: &[
        ("base", "natalie5/Mage-Flow-Base"),
        ("default", "natalie5/Mage-Flow"),
        ("turbo", "natalie5/Mage-Flow-Turbo"),
        ("edit-base", "natalie5/Mage-Flow-Edit-Base"),
        ("edit", "natalie5/Mage-Flow-Edit"),
        ("edit-turbo", "natalie5/Mage-Flow-Edit-Turbo"),
    ] },
    Family { name: "minimaxh3", flavour: "fl2va", video: true, paths: &[
    ] },
    Family { name: "omnigen", flavour: "v1", video: false, paths: &[
        ("v1", "Shitao/OmniGen-v1-diffusers"),
    ] },
    Family { name: "pixart_sigma", flavour: "900M-1024-v0.6", video: false, paths: &[
        ("900M-1024-v0.6", "terminusresearch/pixart-900m-1024-ft-v0.6"),
        ("900M-1024-v0.7-stage1", "terminusresearch/pixart-900m-1024-ft-v0.7-stage1"),
        ("900M-1024-v0.7-stage2", "terminusresearch/pixart-900m-1024-ft-v0.7-stage2"),
        ("600M-512", "PixArt-alpha/PixArt-Sigma-XL-2-512-MS"),
        ("600M-1024", "PixArt-alpha/PixArt-Sigma-XL-2-1024-MS"),
        ("600M-2048", "PixArt-alpha/PixArt-Sigma-XL-2-2K-MS"),
    ] },
    Family { name: "qwen_image", flavour: "v2.0", video: false, paths: &[
        ("v1.0", "Qwen/Qwen-Image"),
        ("v2.0", "Qwen/Qwen-Image-2512"),
        ("edit-v1", "Qwen/Qwen-Image-Edit"),
        ("edit-v2", "Qwen/Qwen-Image-Edit-2509"),
        ("edit-v2+", "Qwen/Qwen-Image-Edit-2509"),
        ("edit-v3", "Qwen/Qwen-Image-Edit-2511"),
    ] },
    Family { name: "sana", flavour: "sana1.5-4.8b-1024", video: false, paths: &[
        ("sana1.5-4.8b-1024", "Efficient-Large-Model/SANA1.5_4.8B_1024px_diffusers"),
        ("sana1.5-1.6b-1024", "Efficient-Large-Model/SANA1.5_1.6B_1024px_diffusers"),
        ("sana1.0-1.6b-2048", "Efficient-Large-Model/Sana_1600M_2Kpx_BF16_diffusers"),
        ("sana1.0-1.6b-1024", "Efficient-Large-Model/Sana_1600M_1024px_BF16_diffusers"),
        ("sana1.0-600m-1024", "Efficient-Large-Model/Sana_600M_1024px_diffusers"),
        ("sana1.0-600m-512", "Efficient-Large-Model/Sana_600M_512px_diffusers"),
    ] },
    Family { name: "sanavideo", flavour: "2b-480p", video: true, paths: &[
        ("2b-480p", "Efficient-Large-Model/SANA-Video_2B_480p_diffusers"),
    ] },
    Family { name: "sd1x", flavour: "dreamshaper", video: false, paths: &[
        ("1.5", "stable-diffusion-v1-5/stable-diffusion-v1-5"),
        ("1.4", "CompVis/stable-diffusion-v1-4"),
        ("dreamshaper", "Lykon/dreamshaper-8"),
        ("realvis", "SG161222/RealVisXL_V5.0"),
    ] },
    Family { name: "sd2x", flavour: "pseudoflex-v2", video: false, paths: &[
        ("digitaldiffusion", "Junglerally/Digital-Diffusion"),
        ("pseudoflex-v2", "bghira/pseudo-flex-v2"),
        ("pseudojourney", "bghira/pseudo-journey-v2"),
        ("2.1", "stabilityai/stable-diffusion-2-1"),
        ("2.0", "stabilityai/stable-diffusion-2-0"),
    ] },
    Family { name: "sd3", flavour: "medium", video: false, paths: &[
        ("medium", "stabilityai/stable-diffusion-3.5-medium"),
        ("large", "stabilityai/stable-diffusion-3.5-large"),
    ] },
    Family { name: "sdxl", flavour: "base-1.0", video: false, paths: &[
        ("base-1.0", "stabilityai/stable-diffusion-xl-base-1.0"),
        ("refiner-1.0", "stabilityai/stable-diffusion-xl-refiner-1.0"),
        ("base-0.9", "stabilityai/stable-diffusion-xl-base-0.9"),
        ("refiner-0.9", "stabilityai/stable-diffusion-xl-refiner-0.9"),
    ] },
    Family { name: "stable_cascade", flavour: "stage-c", video: false, paths: &[
        ("stage-c", "stabilityai/stable-cascade-prior"),
        ("stage-c-lite", "stabilityai/stable-cascade-prior"),
    ] },
    Family { name: "wan", flavour: "t2v-480p-1.3b-2.1", video: true, paths: &[
        ("t2v-480p-1.3b-2.1", "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"),
        ("t2v-480p-14b-2.1", "Wan-AI/Wan2.1-T2V-14B-Diffusers"),
        ("i2v-14b-2.1", "Wan-AI/Wan2.1-I2V-14B-480P-Diffusers"),
        ("i2v-14b-2.1-720p", "Wan-AI/Wan2.1-I2V-14B-720P-Diffusers"),
        ("i2v-14b-2.2-high", "Wan-AI/Wan2.2-I2V-A14B-Diffusers"),
        ("i2v-14b-2.2-low", "Wan-AI/Wan2.2-I2V-A14B-Diffusers"),
        ("flf2v-14b-2.1", "Wan-AI/Wan2.1-FLF2V-14B-720P-diffusers"),
        ("vace-1.3b-2.1", "Wan-AI/Wan2.1-VACE-1.3B-diffusers"),
        ("vace-14b-2.1", "Wan-AI/Wan2.1-VACE-14B-diffusers"),
        ("ti2v-5b-2.2", "Wan-AI/Wan2.2-TI2V-5B-Diffusers"),
        ("i2v-480p-14b-2.1", "Wan-AI/Wan2.1-I2V-14B-480P-Diffusers"),
        ("i2v-720p-14b-2.1", "Wan-AI/Wan2.1-I2V-14B-720P-Diffusers"),
    ] },
    Family { name: "wan_s2v", flavour: "s2v-14b-2.2", video: true, paths: &[
        ("s2v-14b-2.2", "tolgacangoz/Wan2.2-S2V-14B-Diffusers"),
    ] },
    Family { name: "z_image", flavour: "turbo-ostris-v2", video: false, paths: &[
        ("base", "TONGYI-MAI/Z-Image"),
        ("turbo", "TONGYI-MAI/Z-Image-Turbo"),
        ("turbo-ostris-v2", "TONGYI-MAI/Z-Image-Turbo"),
        ("ostris-de-turbo", "TONGYI-MAI/Z-Image-Turbo"),
    ] },
    Family { name: "z_image_omni", flavour: "base", video: false, paths: &[
        ("base", "TONGYI-Lab/Z-Image-Base"),
        ("edit", "TONGYI-Lab/Z-Image-Edit"),
    ] },
    Family { name: "zlab_i1", flavour: "3b", video: false, paths: &[
        ("3b", "bghira/zlab-i1-diffusers"),
    ] },
];

/// What `gradient_checkpointing_interval` counts (documentation/experimental/SEGMENTED_CHECKPOINTING.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interval {
    /// Blocks that share a checkpoint; a stride counts from one such segment's beginning to the next's.
    OfSegments,
    /// Every n-th block is checkpointed.
    OfBlocks,
    /// Nothing.
    Ignored,
}

pub fn checkpoints(family: &str) -> Interval {
    match family {
        "flux" | "flux2" | "hunyuanvideo" | "krea2" | "longcat_video" | "ltxvideo"
        | "ltxvideo2" | "lumina2" | "mageflow" | "minimaxh3" | "pixart_sigma" | "pixart"
        | "sd3" | "sanavideo" | "wan" | "z_image" | "zlab_i1" => Interval::OfSegments,
        "sd1x" | "sd2x" | "sdxl" | "kolors" => Interval::Ignored,
        _ => Interval::OfBlocks,
    }
}
