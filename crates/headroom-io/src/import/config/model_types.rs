//! The model types that a network covers, one row each, and what their keys are called.

/// A `model_type`, its network, and what its configuration means where it says nothing.
pub(super) struct ModelType {
    pub name: &'static str,
    /// The network, as the catalogue calls it; empty for a part of another.
    pub arch: &'static str,
    /// The activation functions that the network runs.
    pub activations: &'static str,
    /// Sizes by the catalogue's names, as the configuration class has them. `rotary%` is the part of a head that turns.
    pub defaults: &'static str,
    /// Values of other keys that the network has; another value would be another network.
    pub fixed: &'static str,
    /// Configurations within it: the key, the model type where none is named, and what stands before the sizes' names.
    pub parts: &'static [(&'static str, &'static str, &'static str)],
}

const fn kind(
    name: &'static str,
    arch: &'static str,
    activations: &'static str,
    defaults: &'static str,
    fixed: &'static str,
) -> ModelType {
    ModelType {
        name,
        arch,
        activations,
        defaults,
        fixed,
        parts: &[],
    }
}

const BERT: &str = "layers=12 hidden=768 heads=12 ffn=3072 vocab=30522 ctx=512 types=2";
const ENCODER: &str = "position_embedding_type=absolute is_decoder=false add_cross_attention=false";
const VIT: &str =
    "num_channels=3 qkv_bias=true hidden_dropout_prob=0 attention_probs_dropout_prob=0";
const UNBIASED: &str = "attention_bias=false";
const QWEN_VL_TEXT: &str =
    "layers=80 hidden=8192 heads=64 kv=8 ffn=29568 vocab=152064 ctx=32768 tied=0";
const DEEPSEEK_V3: &str = "layers=61 hidden=7168 heads=128 ffn=18432 vocab=129280 ctx=4096 tied=0 experts=256 topk=8 moe_ffn=2048 shared_experts=1 kv_rank=512 q_rank=1536 nope_dim=128 rope_dim=64 v_dim=128 dense_layers=3 groups=8 topk_groups=4";
const TANH: &str = "gelu_pytorch_tanh gelu_new";

/// Defaults as in the configuration classes of transformers 5.23 (models/*/configuration_*.py).
pub(super) const MODEL_TYPES: &[ModelType] = &[
    kind(
        "albert",
        "albert",
        "gelu_new gelu",
        "layers=12 hidden=4096 heads=64 ffn=16384 vocab=30000 ctx=512 types=2 embedding=128",
        "num_hidden_groups=1 inner_group_num=1",
    ),
    kind(
        "bart",
        "bart",
        "gelu",
        "layers=12 decoder_layers=12 hidden=1024 heads=16 ffn=4096 vocab=50265 ctx=1024 tied=1",
        "",
    ),
    kind("bert", "bert", "gelu", BERT, ENCODER),
    kind(
        "bloom",
        "bloom",
        "",
        "layers=2 hidden=64 heads=8 vocab=250880 tied=1",
        "apply_residual_connection_post_layernorm=false hidden_dropout=0 attention_dropout=0 slow_but_exact=false",
    ),
    kind("camembert", "roberta", "gelu", BERT, ENCODER),
    ModelType {
        parts: &[
            ("text_config", "clip_text_model", "t_"),
            ("vision_config", "clip_vision_model", "v_"),
        ],
        ..kind("clip", "clip", "", "proj=512", "")
    },
    kind(
        "clip_text_model",
        "clip_text",
        "quick_gelu gelu",
        "layers=12 hidden=512 heads=8 ffn=2048 vocab=49408 ctx=77",
        "",
    ),
    kind(
        "clip_vision_model",
        "",
        "quick_gelu",
        "layers=12 hidden=768 heads=12 ffn=3072 img=224 patch=32",
        "num_channels=3",
    ),
    kind(
        "cohere",
        "cohere",
        "silu",
        "layers=40 hidden=8192 heads=64 ffn=22528 vocab=256000 ctx=8192 tied=1 qk_norm=0",
        UNBIASED,
    ),
    kind(
        "deberta-v2",
        "deberta",
        "gelu",
        "layers=24 hidden=1536 heads=24 ffn=6144 vocab=128100 ctx=512 types=0 buckets=256",
        "relative_attention=true position_biased_input=false share_att_key=true norm_rel_ebd=layer_norm conv_kernel_size=0",
    ),
    kind(
        "deepseek_v2",
        "deepseek_v2",
        "silu",
        "layers=32 hidden=4096 heads=32 ffn=11008 vocab=102400 ctx=2048 tied=0 experts=64 topk=6 moe_ffn=1407 shared_experts=2 kv_rank=512 q_rank=1536 nope_dim=128 rope_dim=64 v_dim=128 dense_layers=0 groups=0 topk_groups=0",
        "attention_bias=false mlp_bias=false",
    ),
    kind(
        "deepseek_v3",
        "deepseek_v3",
        "silu",
        DEEPSEEK_V3,
        "attention_bias=false",
    ),
    kind(
        "deit",
        "deit",
        "gelu",
        "layers=12 hidden=768 heads=12 ffn=3072 img=224 patch=16 classes=2",
        VIT,
    ),
    kind(
        "dinov2",
        "dinov2_hf",
        "gelu",
        "layers=12 hidden=768 heads=12 img=224 patch=14 classes=2",
        "mlp_ratio=4 use_swiglu_ffn=false drop_path_rate=0 use_mask_token=true num_channels=3 qkv_bias=true hidden_dropout_prob=0 attention_probs_dropout_prob=0",
    ),
    kind(
        "distilbert",
        "distilbert",
        "gelu",
        "layers=6 hidden=768 heads=12 ffn=3072 vocab=30522 ctx=512",
        "sinusoidal_pos_embds=false",
    ),
    kind(
        "electra",
        "electra",
        "gelu",
        "layers=12 hidden=256 heads=4 ffn=1024 vocab=30522 ctx=512 types=2 embedding=128",
        ENCODER,
    ),
    kind(
        "esm",
        "esm",
        "gelu",
        "layers=12 hidden=768 heads=12 ffn=3072 vocab=33 ctx=1026",
        "position_embedding_type=rotary emb_layer_norm_before=false is_folding_model=false add_cross_attention=false hidden_dropout_prob=0 attention_probs_dropout_prob=0",
    ),
    kind(
        "falcon",
        "falcon",
        "gelu",
        "layers=32 hidden=4544 heads=71 vocab=65024 ctx=2048 tied=1 new_block=0",
        "alibi=false bias=false parallel_attn=true",
    ),
    kind(
        "gemma",
        "gemma",
        "gelu gelu_pytorch_tanh",
        "layers=28 hidden=3072 heads=16 kv=16 head_dim=256 ffn=24576 vocab=256000 ctx=8192 tied=1",
        UNBIASED,
    ),
    kind(
        "gemma2",
        "gemma2",
        TANH,
        "layers=26 hidden=2304 heads=8 kv=4 head_dim=256 ffn=9216 vocab=256000 ctx=8192 tied=1 window=4096",
        UNBIASED,
    ),
    ModelType {
        parts: &[
            ("text_config", "gemma3_text", ""),
            ("vision_config", "siglip_vision_model", "v_"),
        ],
        ..kind("gemma3", "gemma3", "", "image_tokens=256", "")
    },
    kind(
        "gemma3_text",
        "gemma3_text",
        TANH,
        "layers=26 hidden=2304 heads=8 kv=4 head_dim=256 ffn=9216 vocab=262208 ctx=131072 tied=1 window=4096",
        UNBIASED,
    ),
    kind(
        "glm",
        "glm",
        "silu",
        "layers=40 hidden=4096 heads=32 kv=2 head_dim=128 ffn=13696 vocab=151552 ctx=131072 tied=0 rotary%=50",
        "attention_bias=true",
    ),
    kind(
        "glm4",
        "glm4",
        "silu",
        "layers=40 hidden=4096 heads=32 kv=2 head_dim=128 ffn=13696 vocab=151552 ctx=131072 tied=0 rotary%=50 qkv_bias=1",
        "",
    ),
    kind(
        "glm4_moe",
        "glm4_moe",
        "silu",
        "layers=46 hidden=4096 heads=96 kv=8 head_dim=128 ffn=10944 vocab=151552 ctx=131072 tied=0 rotary%=50 qkv_bias=0 qk_norm=0 experts=128 topk=8 moe_ffn=1408 shared_experts=1 dense_layers=1 groups=0 topk_groups=0",
        "norm_topk_prob=true",
    ),
    kind(
        "gpt2",
        "gpt2",
        TANH,
        "layers=12 hidden=768 heads=12 vocab=50257 ctx=1024 tied=1",
        "scale_attn_by_inverse_layer_idx=false reorder_and_upcast_attn=false add_cross_attention=false",
    ),
    kind(
        "gpt_bigcode",
        "gpt_bigcode",
        TANH,
        "layers=12 hidden=768 heads=12 kv=1 vocab=50257 ctx=1024 tied=1",
        "multi_query=true",
    ),
    kind(
        "gpt_neo",
        "gpt_neo",
        "gelu_new",
        "layers=24 hidden=2048 heads=16 vocab=50257 ctx=2048 tied=1 window=256",
        "",
    ),
    kind(
        "gpt_neox",
        "gpt_neox",
        "gelu",
        "layers=44 hidden=6144 heads=64 ffn=24576 vocab=50432 ctx=2048 tied=0 rotary%=25",
        "use_parallel_residual=true attention_bias=true",
    ),
    kind(
        "gpt_oss",
        "gpt_oss",
        "silu",
        "layers=36 hidden=2880 heads=64 kv=8 head_dim=64 ffn=2880 vocab=201088 ctx=131072 tied=0 window=128 experts=128 topk=4",
        "attention_bias=true",
    ),
    kind(
        "gptj",
        "gptj",
        "gelu_new",
        "layers=28 hidden=4096 heads=16 vocab=50400 ctx=2048 tied=0 rotary=64",
        "resid_pdrop=0 embd_pdrop=0 attn_pdrop=0",
    ),
    kind(
        "granite",
        "granite",
        "silu",
        "layers=32 hidden=4096 heads=32 ffn=11008 vocab=32000 ctx=2048 tied=0",
        "attention_bias=false mlp_bias=false",
    ),
    kind("kimi_k2", "deepseek_v3", "silu", DEEPSEEK_V3, UNBIASED),
    kind(
        "llama",
        "llama",
        "silu",
        "layers=32 hidden=4096 heads=32 ffn=11008 vocab=32000 ctx=2048 tied=0",
        "attention_bias=false mlp_bias=false",
    ),
    ModelType {
        parts: &[
            ("text_config", "llama", ""),
            ("vision_config", "clip_vision_model", "v_"),
        ],
        ..kind(
            "llava",
            "llava",
            "",
            "tied=0",
            "projector_hidden_act=gelu vision_feature_layer=-2 multimodal_projector_bias=true",
        )
    },
    kind(
        "mamba",
        "mamba",
        "silu",
        "layers=32 hidden=768 vocab=50280 tied=1 state=16 conv=4",
        "use_bias=false use_conv_bias=true",
    ),
    kind(
        "marian",
        "marian",
        "swish silu",
        "layers=12 decoder_layers=12 hidden=1024 heads=16 ffn=4096 vocab=58101 ctx=1024 tied=1",
        "share_encoder_decoder_embeddings=true attention_dropout=0 activation_dropout=0",
    ),
    kind(
        "mbart",
        "mbart",
        "gelu",
        "layers=12 decoder_layers=12 hidden=1024 heads=16 ffn=4096 vocab=50265 ctx=1024 tied=1",
        "attention_dropout=0 activation_dropout=0",
    ),
    kind(
        "mistral",
        "mistral",
        "silu",
        "layers=32 hidden=4096 heads=32 kv=8 ffn=14336 vocab=32000 ctx=131072 tied=0 window=4096",
        UNBIASED,
    ),
    kind(
        "mixtral",
        "mixtral",
        "silu",
        "layers=32 hidden=4096 heads=32 kv=8 ffn=14336 vocab=32000 ctx=131072 tied=0 experts=8 topk=2",
        UNBIASED,
    ),
    kind(
        "modernbert",
        "modernbert",
        "gelu",
        "layers=22 hidden=768 heads=12 ffn=1152 vocab=50368 ctx=8192 window=128 global_every=3",
        "attention_bias=false mlp_bias=false norm_bias=false",
    ),
    kind(
        "mpnet",
        "mpnet",
        "gelu",
        "layers=12 hidden=768 heads=12 ffn=3072 vocab=30527 ctx=512 buckets=32",
        "",
    ),
    kind(
        "mpt",
        "mpt",
        "",
        "layers=24 hidden=2048 heads=16 vocab=50368 ctx=2048 tied=1",
        "expansion_ratio=4 no_bias=true attn_config.alibi=true attn_config.attn_pdrop=0 attn_config.clip_qkv=none attn_config.qk_ln=false attn_config.prefix_lm=false",
    ),
    kind(
        "mt5",
        "t5",
        "relu gelu_new gated-gelu",
        "layers=8 hidden=512 heads=6 head_dim=64 ffn=1024 vocab=250112 buckets=32 gated=1 tied=1",
        "",
    ),
    kind(
        "olmo",
        "olmo",
        "silu",
        "layers=32 hidden=4096 heads=32 ffn=11008 vocab=50304 ctx=2048 tied=0",
        UNBIASED,
    ),
    kind(
        "olmo2",
        "olmo2",
        "silu",
        "layers=32 hidden=4096 heads=32 ffn=11008 vocab=50304 ctx=2048 tied=0",
        UNBIASED,
    ),
    kind(
        "olmoe",
        "olmoe",
        "silu",
        "layers=16 hidden=2048 heads=16 ffn=2048 vocab=50304 ctx=4096 tied=0 experts=64 topk=8",
        "attention_bias=false norm_topk_prob=false",
    ),
    kind(
        "opt",
        "opt",
        "relu",
        "layers=12 hidden=768 heads=12 ffn=3072 vocab=50272 ctx=2048 tied=1 pre_norm=1",
        "enable_bias=true layer_norm_elementwise_affine=true _remove_final_layer_norm=false",
    ),
    ModelType {
        parts: &[
            ("text_config", "gemma", ""),
            ("vision_config", "siglip_vision_model", "v_"),
        ],
        ..kind("paligemma", "paligemma", "", "proj=2048", "")
    },
    kind(
        "phi",
        "phi",
        TANH,
        "layers=24 hidden=2048 heads=32 ffn=8192 vocab=51200 ctx=2048 tied=0 rotary%=50",
        "qk_layernorm=false",
    ),
    kind(
        "phi3",
        "phi3",
        "silu",
        "layers=32 hidden=3072 heads=32 ffn=8192 vocab=32064 ctx=4096 tied=0 rotary%=100",
        UNBIASED,
    ),
    kind(
        "qwen2",
        "qwen2",
        "silu",
        "layers=32 hidden=4096 heads=32 kv=32 ffn=22016 vocab=151936 ctx=32768 tied=0",
        "use_sliding_window=false",
    ),
    ModelType {
        parts: &[
            ("text_config", "qwen2_vl_text", ""),
            ("vision_config", "qwen2_5_vl_vision", "v_"),
        ],
        ..kind(
            "qwen2_5_vl",
            "qwen2_5_vl",
            "silu",
            "",
            "use_sliding_window=false",
        )
    },
    kind(
        "qwen2_5_vl_text",
        "",
        "silu",
        QWEN_VL_TEXT,
        "use_sliding_window=false",
    ),
    kind(
        "qwen2_5_vl_vision",
        "",
        "silu",
        "layers=32 hidden=1280 heads=16 ffn=3420 patch=14 merge=2 temporal=2 v_window=112",
        "in_channels=3",
    ),
    kind(
        "qwen2_moe",
        "qwen2_moe",
        "silu",
        "layers=24 hidden=2048 heads=16 kv=16 ffn=5632 vocab=151936 ctx=32768 tied=0 experts=60 topk=4 moe_ffn=1408 shared_ffn=5632",
        "use_sliding_window=false decoder_sparse_step=1 norm_topk_prob=false qkv_bias=true",
    ),
    ModelType {
        parts: &[
            ("text_config", "qwen2_vl_text", ""),
            ("vision_config", "qwen2_vl_vision", "v_"),
        ],
        ..kind(
            "qwen2_vl",
            "qwen2_vl",
            "silu",
            "",
            "use_sliding_window=false",
        )
    },
    kind(
        "qwen2_vl_text",
        "",
        "silu",
        QWEN_VL_TEXT,
        "use_sliding_window=false",
    ),
    kind(
        "qwen2_vl_vision",
        "",
        "quick_gelu",
        "layers=32 hidden=1280 heads=16 patch=14 merge=2 temporal=2",
        "in_channels=3",
    ),
    kind(
        "qwen3",
        "qwen3",
        "silu",
        "layers=32 hidden=4096 heads=32 kv=32 head_dim=128 ffn=22016 vocab=151936 ctx=32768 tied=0",
        "attention_bias=false use_sliding_window=false",
    ),
    kind(
        "qwen3_moe",
        "qwen3_moe",
        "silu",
        "layers=24 hidden=2048 heads=32 kv=4 ffn=6144 vocab=151936 ctx=32768 tied=0 experts=128 topk=8 moe_ffn=768",
        "attention_bias=false use_sliding_window=false decoder_sparse_step=1",
    ),
    kind("roberta", "roberta", "gelu", BERT, ENCODER),
    ModelType {
        parts: &[
            ("text_config", "siglip_text_model", "t_"),
            ("vision_config", "siglip_vision_model", "v_"),
        ],
        ..kind("siglip", "siglip", "", "", "")
    },
    kind(
        "siglip_text_model",
        "",
        TANH,
        "layers=12 hidden=768 heads=12 ffn=3072 vocab=32000 ctx=64",
        "",
    ),
    kind(
        "siglip_vision_model",
        "",
        TANH,
        "layers=12 hidden=768 heads=12 ffn=3072 img=224 patch=16",
        "num_channels=3",
    ),
    kind(
        "smollm3",
        "smollm3",
        "silu",
        "layers=36 hidden=2048 heads=16 kv=4 ffn=11008 vocab=128256 ctx=32768 tied=1",
        "attention_bias=false mlp_bias=false use_sliding_window=false",
    ),
    kind(
        "stablelm",
        "stablelm",
        "silu",
        "layers=32 hidden=2560 heads=32 kv=32 ffn=6912 vocab=50304 ctx=4096 tied=0 rotary%=25 qkv_bias=0 qk_norm=0 parallel=0",
        "",
    ),
    kind(
        "starcoder2",
        "starcoder2",
        TANH,
        "layers=30 hidden=3072 heads=24 kv=2 ffn=12288 vocab=49152 ctx=4096 tied=1 bias=1",
        "",
    ),
    kind(
        "t5",
        "t5",
        "relu gelu_new gated-gelu",
        "layers=6 hidden=512 heads=8 head_dim=64 ffn=2048 vocab=32128 buckets=32 gated=0 tied=1",
        "",
    ),
    kind(
        "vit",
        "vit",
        "gelu",
        "layers=12 hidden=768 heads=12 ffn=3072 img=224 patch=16 classes=2",
        VIT,
    ),
    kind(
        "vit_mae",
        "vit_mae",
        "gelu",
        "layers=12 hidden=768 heads=12 ffn=3072 img=224 patch=16 d_layers=8 d_hidden=512 d_heads=16 d_ffn=2048 mask_percent=75",
        "norm_pix_loss=false qkv_bias=true num_channels=3 hidden_dropout_prob=0 attention_probs_dropout_prob=0",
    ),
    kind(
        "whisper",
        "whisper",
        "gelu",
        "layers=4 decoder_layers=4 hidden=384 heads=6 ffn=1536 vocab=51865 mel=80 audio_ctx=1500 ctx=448 tied=1",
        "",
    ),
    kind("xlm-roberta", "roberta", "gelu", BERT, ENCODER),
];

/// The pairs of a row's text, such as `layers=12 hidden=768`.
pub(super) fn pairs(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split(' ').filter_map(|pair| pair.split_once('='))
}
