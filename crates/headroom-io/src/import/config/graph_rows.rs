//! The configurations that single models of the catalogue are of, one row each; most of these answer by recorded graphs.

/// A `model_type`, a model of the catalogue, and the values that it is of. What transformers' class has
/// where a file says nothing bears a `?`.
pub(super) struct Row {
    pub model_type: &'static str,
    pub id: &'static str,
    pub values: &'static str,
}

const fn row(model_type: &'static str, id: &'static str, values: &'static str) -> Row {
    Row {
        model_type,
        id,
        values,
    }
}

/// Values as the configuration classes of transformers 5.23 write them for the models that `scripts/graphs.py` records.
pub(super) const ROWS: &[Row] = &[
    row(
        "audio-spectrogram-transformer",
        "ast-audioset",
        "hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 patch_size?=16 frequency_stride?=10 time_stride?=10",
    ),
    row(
        "beit",
        "beit-base-p16-224-hf",
        "vocab_size?=8192 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 image_size?=224 patch_size?=16 use_absolute_position_embeddings?=false use_relative_position_bias=true use_shared_relative_position_bias?=false use_mean_pooling?=true add_fpn?=false",
    ),
    row(
        "blip-2",
        "blip2-opt-2.7b",
        "vision_config.hidden_size?=1408 vision_config.intermediate_size?=6144 vision_config.num_hidden_layers?=39 vision_config.num_attention_heads?=16 vision_config.image_size?=224 vision_config.patch_size?=14 qformer_config.hidden_size?=768 qformer_config.num_hidden_layers?=12 text_config.model_type?=opt text_config.vocab_size=50304 text_config.hidden_size=2560 text_config.ffn_dim=10240 text_config.num_hidden_layers=32 text_config.num_attention_heads=32 num_query_tokens?=32",
    ),
    row(
        "clap",
        "clap-htsat-unfused",
        "audio_config.hidden_size?=768 audio_config.patch_embeds_hidden_size?=96 audio_config.depths?=2,2,6,2 audio_config.num_attention_heads?=4,8,16,32 audio_config.window_size?=8 audio_config.spec_size?=256 audio_config.enable_fusion?=false audio_config.num_mel_bins?=64 text_config.vocab_size?=50265 text_config.hidden_size?=768 text_config.intermediate_size?=3072 text_config.num_hidden_layers?=12 text_config.num_attention_heads?=12 projection_dim?=512",
    ),
    row(
        "codegen",
        "codegen-350m-mono",
        "vocab_size=51200 n_positions?=2048 n_ctx?=2048 n_embd=1024 n_layer=20 n_head?=16 rotary_dim=32",
    ),
    row(
        "cohere2",
        "command-r7b",
        "vocab_size?=256000 hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 attention_bias?=false sliding_window?=4096 head_dim?=128",
    ),
    row(
        "convnext",
        "convnext-tiny-hf",
        "patch_size?=4 num_stages?=4 hidden_sizes?=96,192,384,768 depths?=3,3,9,3 image_size?=224",
    ),
    row(
        "convnextv2",
        "convnextv2-tiny",
        "patch_size?=4 num_stages?=4 hidden_sizes?=96,192,384,768 depths?=3,3,9,3 image_size?=224",
    ),
    row(
        "depth_anything",
        "depth-anything-small",
        "backbone_config.hidden_size=384 backbone_config.num_hidden_layers?=12 backbone_config.num_attention_heads=6 backbone_config.image_size=518 backbone_config.patch_size?=14 reassemble_hidden_size?=384 reassemble_factors?=4,2,1,0.5 neck_hidden_sizes?=48,96,192,384 fusion_hidden_size?=64 head_hidden_size?=32",
    ),
    row(
        "detr",
        "detr-resnet-50",
        "d_model?=256 encoder_layers?=6 decoder_layers?=6 encoder_ffn_dim?=2048 decoder_ffn_dim?=2048 num_queries?=100 backbone?=resnet50 dilation?=false auxiliary_loss?=false",
    ),
    row(
        "dinov3_vit",
        "dinov3-vits16",
        "patch_size?=16 hidden_size?=384 intermediate_size?=1536 num_hidden_layers?=12 num_attention_heads?=6 image_size?=224 query_bias?=true key_bias?=false value_bias?=true proj_bias?=true mlp_bias?=true use_gated_mlp?=false num_register_tokens=4",
    ),
    row(
        "dpt",
        "dpt-large",
        "hidden_size=1024 intermediate_size=4096 num_hidden_layers=24 num_attention_heads=16 image_size?=384 patch_size?=16 backbone_out_indices=5,11,17,23 neck_hidden_sizes=256,512,1024,1024 fusion_hidden_size?=256 readout_type?=project is_hybrid?=false",
    ),
    row(
        "ernie",
        "ernie-3.0-base-zh",
        "vocab_size=40000 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 max_position_embeddings=2048 type_vocab_size=4 task_type_vocab_size?=3",
    ),
    row(
        "florence2",
        "florence2-base",
        "vision_config.depths?=1,1,9,1 vision_config.embed_dim?=128,256,512,1024 vision_config.num_heads?=4,8,16,32 vision_config.window_size?=12 vision_config.projection_dim=768 text_config.vocab_size=51328 text_config.d_model=768 text_config.encoder_layers=6 text_config.decoder_layers=6 text_config.encoder_ffn_dim=3072 text_config.decoder_ffn_dim=3072",
    ),
    row(
        "gemma3n",
        "gemma-3n-e4b",
        "text_config.vocab_size?=262400 text_config.hidden_size?=2048 text_config.num_hidden_layers?=35 text_config.num_attention_heads?=8 text_config.num_key_value_heads?=2 text_config.hidden_size_per_layer_input?=256 text_config.num_kv_shared_layers?=15 text_config.laurel_rank?=64 text_config.altup_num_inputs?=4 vision_config.architecture?=mobilenetv5_300m_enc vision_config.hidden_size?=2048 audio_config.hidden_size?=1536 audio_config.conf_num_hidden_layers?=12",
    ),
    row(
        "gemma4",
        "gemma-4-e2b",
        "text_config.vocab_size?=262144 text_config.hidden_size=1536 text_config.intermediate_size=6144 text_config.num_hidden_layers=35 text_config.num_attention_heads?=8 text_config.num_key_value_heads=1 text_config.hidden_size_per_layer_input?=256 text_config.num_kv_shared_layers=20 text_config.use_double_wide_mlp=true text_config.enable_moe_block?=false vision_config.hidden_size?=768 vision_config.num_hidden_layers?=16 audio_config.hidden_size?=1024 audio_config.num_hidden_layers?=12",
    ),
    row(
        "granitemoe",
        "granite-3.0-1b-a400m",
        "vocab_size=49155 hidden_size=1024 intermediate_size=512 num_hidden_layers=24 num_attention_heads=16 num_key_value_heads=8 attention_bias?=false num_local_experts=32 num_experts_per_tok=8",
    ),
    row(
        "grounding-dino",
        "grounding-dino-base",
        "d_model?=256 encoder_layers?=6 decoder_layers?=6 encoder_ffn_dim?=2048 decoder_ffn_dim?=2048 num_queries?=900 num_feature_levels?=4 two_stage?=true backbone_config.embed_dim=128 backbone_config.depths=2,2,18,2 backbone_config.window_size=12 text_config.hidden_size?=768 text_config.num_hidden_layers?=12",
    ),
    row(
        "hubert",
        "hubert-base-ls960",
        "vocab_size?=32 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 conv_dim?=512,512,512,512,512,512,512 conv_stride?=5,2,2,2,2,2,2 conv_kernel?=10,3,3,3,3,2,2 conv_bias?=false conv_pos_batch_norm?=false",
    ),
    row(
        "idefics3",
        "idefics3-8b-llama3",
        "vision_config.hidden_size?=1152 vision_config.intermediate_size=4304 vision_config.num_hidden_layers=27 vision_config.num_attention_heads?=16 vision_config.image_size=364 vision_config.patch_size=14 text_config.vocab_size=128259 text_config.hidden_size?=4096 text_config.intermediate_size=14336 text_config.num_hidden_layers?=32 text_config.num_attention_heads?=32 text_config.num_key_value_heads=8 scale_factor?=2",
    ),
    row(
        "internvl",
        "internvl3-1b",
        "vision_config.hidden_size?=1024 vision_config.intermediate_size?=4096 vision_config.num_hidden_layers?=24 vision_config.num_attention_heads?=16 vision_config.image_size?=448,448 vision_config.patch_size?=14,14 text_config.vocab_size=151674 text_config.hidden_size=896 text_config.intermediate_size=4864 text_config.num_hidden_layers=24 text_config.num_attention_heads=14 text_config.num_key_value_heads=2 vision_config.use_qk_norm?=false vision_config.attention_bias=true downsample_ratio?=0.5",
    ),
    row(
        "jamba",
        "jamba-v0.1",
        "vocab_size?=65536 hidden_size?=4096 intermediate_size?=14336 num_hidden_layers?=32 num_attention_heads?=32 num_key_value_heads?=8 num_experts_per_tok?=2 num_experts?=16 expert_layer_period?=2 expert_layer_offset?=1 attn_layer_period?=8 attn_layer_offset?=4 use_mamba_kernels?=true mamba_d_state?=16 mamba_d_conv?=4 mamba_expand?=2 mamba_conv_bias?=true mamba_proj_bias?=false use_mambapy?=false use_associative_scan?=true",
    ),
    row(
        "layoutlm",
        "layoutlm-base-uncased",
        "vocab_size?=30522 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 max_position_embeddings?=512 type_vocab_size?=2",
    ),
    row(
        "layoutlmv3",
        "layoutlmv3-base",
        "vocab_size?=50265 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 max_position_embeddings=514 type_vocab_size=1 shape_size?=128 has_relative_attention_bias?=true has_spatial_attention_bias?=true text_embed?=true visual_embed?=true input_size?=224 patch_size?=16",
    ),
    row(
        "lfm2",
        "lfm2-1.2b",
        "vocab_size?=65536 hidden_size=2048 intermediate_size?=12288 num_hidden_layers=16 num_attention_heads?=32 num_key_value_heads?=8 conv_L_cache?=3 conv_bias?=false block_auto_adjust_ff_dim?=true block_ffn_dim_multiplier?=1",
    ),
    row(
        "llama4",
        "llama-4-scout",
        "vision_config.hidden_size=1408 vision_config.num_hidden_layers?=34 vision_config.num_attention_heads?=16 vision_config.intermediate_size?=5632 vision_config.image_size=336 vision_config.patch_size?=14 vision_config.projector_input_dim?=4096 vision_config.multi_modal_projector_bias?=false text_config.vocab_size?=202048 text_config.hidden_size?=5120 text_config.intermediate_size?=8192 text_config.intermediate_size_mlp?=16384 text_config.num_hidden_layers?=48 text_config.num_attention_heads?=40 text_config.num_key_value_heads?=8 text_config.head_dim?=128 text_config.num_experts_per_tok?=1 text_config.num_local_experts?=16 text_config.interleave_moe_layer_step?=1 text_config.use_qk_norm?=true text_config.attention_bias?=false",
    ),
    row(
        "llava_next",
        "llava-v1.6-mistral-7b",
        "vision_config.hidden_size=1024 vision_config.intermediate_size=4096 vision_config.num_hidden_layers=24 vision_config.num_attention_heads=16 vision_config.image_size=336 vision_config.patch_size=14 text_config.vocab_size=32064 text_config.hidden_size?=4096 text_config.intermediate_size?=14336 text_config.num_hidden_layers?=32 text_config.num_attention_heads?=32 text_config.num_key_value_heads?=8 text_config.model_type?=mistral vision_feature_layer?=-2 multimodal_projector_bias?=true",
    ),
    row(
        "llava_onevision",
        "llava-onevision-0.5b",
        "vision_config.hidden_size=1152 vision_config.intermediate_size=4304 vision_config.num_hidden_layers=26 vision_config.num_attention_heads=16 vision_config.image_size=384 vision_config.patch_size=14 text_config.vocab_size=152000 text_config.hidden_size=896 text_config.intermediate_size=4864 text_config.num_hidden_layers=24 text_config.num_attention_heads=14 text_config.num_key_value_heads=2 text_config.model_type?=qwen2 vision_feature_layer?=-1 tie_word_embeddings=true",
    ),
    row(
        "longformer",
        "longformer-base-4096",
        "hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 vocab_size=50265 attention_window?=512,512,512,512,512,512,512,512,512,512,512,512",
    ),
    row(
        "mamba2",
        "mamba2-130m",
        "hidden_size=768 num_hidden_layers=24 num_heads=24 state_size?=128 vocab_size=50288 n_groups=1 chunk_size?=256",
    ),
    row(
        "mamba2",
        "mamba2-370m",
        "hidden_size=1024 num_hidden_layers=48 num_heads=32 state_size?=128 vocab_size=50288 n_groups=1 chunk_size?=256",
    ),
    row(
        "ministral3",
        "ministral-3-8b",
        "vocab_size?=131072 hidden_size?=4096 intermediate_size?=14336 num_hidden_layers?=34 num_attention_heads?=32 num_key_value_heads?=8 head_dim?=128",
    ),
    row(
        "mistral3",
        "mistral-small-3.1-24b",
        "vision_config.hidden_size?=1024 vision_config.intermediate_size?=4096 vision_config.num_hidden_layers?=24 vision_config.num_attention_heads?=16 vision_config.image_size=1540 vision_config.patch_size=14 text_config.vocab_size=131072 text_config.hidden_size=5120 text_config.intermediate_size=32768 text_config.num_hidden_layers=40 text_config.num_attention_heads?=32 text_config.num_key_value_heads?=8 text_config.head_dim?=128 spatial_merge_size?=2 multimodal_projector_bias?=false",
    ),
    row(
        "mllama",
        "llama-3.2-11b-vision",
        "vision_config.hidden_size?=1280 vision_config.num_hidden_layers?=32 vision_config.num_global_layers?=8 vision_config.attention_heads?=16 vision_config.intermediate_size?=5120 vision_config.image_size=560 vision_config.patch_size?=14 vision_config.max_num_tiles?=4 vision_config.intermediate_layers_indices?=3,7,15,23,30 text_config.vocab_size?=128256 text_config.hidden_size?=4096 text_config.num_hidden_layers?=40 text_config.num_attention_heads?=32 text_config.num_key_value_heads?=8 text_config.intermediate_size?=14336 text_config.cross_attention_layers?=3,8,13,18,23,28,33,38",
    ),
    row(
        "mobilenet_v2",
        "mobilenet-v2-hf",
        "image_size?=224 depth_multiplier?=1 expand_ratio?=6 output_stride?=32 depth_divisible_by?=8 finegrained_output?=true",
    ),
    row(
        "mobilevit",
        "mobilevit-small",
        "image_size?=256 patch_size?=2 hidden_sizes?=144,192,240 neck_hidden_sizes?=16,32,64,96,128,160,640 num_attention_heads?=4 conv_kernel_size?=3",
    ),
    row(
        "musicgen",
        "musicgen-small",
        "decoder.vocab_size?=2048 decoder.hidden_size?=1024 decoder.ffn_dim?=4096 decoder.num_hidden_layers?=24 decoder.num_attention_heads?=16 decoder.num_codebooks?=4 text_encoder.d_model=768 text_encoder.d_ff=3072 text_encoder.num_layers=12 audio_encoder.num_filters=64 audio_encoder.codebook_size=2048",
    ),
    row(
        "nomic_bert",
        "nomic-embed-text-v1.5",
        "vocab_size?=30528 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 type_vocab_size?=2 head_dim?=64",
    ),
    row(
        "owlv2",
        "owlv2-base-patch16-ensemble",
        "vision_config.hidden_size?=768 vision_config.intermediate_size?=3072 vision_config.num_hidden_layers?=12 vision_config.num_attention_heads?=12 vision_config.image_size=960 vision_config.patch_size?=16 text_config.vocab_size?=49408 text_config.hidden_size?=512 text_config.intermediate_size?=2048 text_config.num_hidden_layers?=12 text_config.num_attention_heads?=8",
    ),
    row(
        "patchtst",
        "patchtst-etth1",
        "d_model?=128 num_hidden_layers?=3 num_attention_heads=16 ffn_dim?=512 context_length=512 patch_length=12 patch_stride=12 num_input_channels=7 prediction_length=96",
    ),
    row(
        "phimoe",
        "phi-3.5-moe",
        "vocab_size?=32064 hidden_size?=4096 intermediate_size?=6400 num_hidden_layers?=32 num_attention_heads?=32 num_key_value_heads?=8 sliding_window=131072 num_experts_per_tok?=2 num_local_experts?=16 attention_bias=true lm_head_bias=true",
    ),
    row(
        "qwen3_next",
        "qwen3-next-80b-a3b",
        "vocab_size?=151936 hidden_size?=2048 num_hidden_layers?=48 num_attention_heads?=16 num_key_value_heads?=2 head_dim?=256 linear_conv_kernel_dim?=4 linear_key_head_dim?=128 linear_value_head_dim?=128 linear_num_key_heads?=16 linear_num_value_heads?=32 full_attention_interval?=4 decoder_sparse_step?=1 mlp_only_layers?= moe_intermediate_size?=512 shared_expert_intermediate_size?=512 num_experts_per_tok?=10 num_experts?=512 tie_word_embeddings?=false",
    ),
    row(
        "qwen3_vl",
        "qwen3-vl-4b",
        "vision_config.depth=24 vision_config.hidden_size=1024 vision_config.intermediate_size=4096 vision_config.num_heads?=16 vision_config.out_hidden_size=2560 vision_config.patch_size?=16 vision_config.deepstack_visual_indexes=5,11,17 text_config.vocab_size?=151936 text_config.hidden_size=2560 text_config.intermediate_size=9728 text_config.num_hidden_layers=36 text_config.num_attention_heads?=32 text_config.num_key_value_heads=8 text_config.head_dim?=128 tie_word_embeddings=true",
    ),
    row(
        "regnet",
        "regnet-y-040",
        "embedding_size?=32 hidden_sizes?=128,192,512,1088 depths?=2,6,12,2 groups_width?=64 layer_type?=y downsample_in_first_stage?=true",
    ),
    row(
        "resnet",
        "resnet-18-hf",
        "embedding_size?=64 hidden_sizes=64,128,256,512 depths=2,2,2,2 layer_type=basic downsample_in_first_stage?=false downsample_in_bottleneck?=false",
    ),
    row(
        "resnet",
        "resnet-50-hf",
        "embedding_size?=64 hidden_sizes?=256,512,1024,2048 depths?=3,4,6,3 layer_type?=bottleneck downsample_in_first_stage?=false downsample_in_bottleneck?=false",
    ),
    row(
        "rt_detr",
        "rtdetr-r50vd",
        "d_model?=256 encoder_hidden_dim?=256 encoder_layers?=1 encoder_ffn_dim?=1024 decoder_layers?=6 decoder_ffn_dim?=1024 num_queries?=300 num_denoising?=100 backbone_config.hidden_sizes?=256,512,1024,2048 backbone_config.depths?=3,4,6,3 freeze_backbone_batch_norms?=true",
    ),
    row(
        "rwkv",
        "rwkv-4-169m",
        "vocab_size?=50277 hidden_size=768 num_hidden_layers=12 attention_hidden_size=768 intermediate_size=3072",
    ),
    row(
        "sam",
        "sam-vit-b",
        "vision_config.hidden_size?=768 vision_config.num_hidden_layers?=12 vision_config.num_attention_heads?=12 vision_config.image_size?=1024 vision_config.patch_size?=16 mask_decoder_config.hidden_size?=256",
    ),
    row(
        "sam",
        "sam-vit-h",
        "vision_config.hidden_size=1280 vision_config.num_hidden_layers=32 vision_config.num_attention_heads=16 vision_config.image_size?=1024 vision_config.patch_size?=16 mask_decoder_config.hidden_size?=256",
    ),
    row(
        "sam",
        "sam-vit-l",
        "vision_config.hidden_size=1024 vision_config.num_hidden_layers=24 vision_config.num_attention_heads=16 vision_config.image_size?=1024 vision_config.patch_size?=16 mask_decoder_config.hidden_size?=256",
    ),
    row(
        "seamless_m4t",
        "seamless-m4t-medium",
        "vocab_size=256206 hidden_size?=1024 encoder_layers=12 decoder_layers=12 encoder_ffn_dim=4096 decoder_ffn_dim=4096 speech_encoder_layers=12 speech_encoder_intermediate_size?=4096 max_position_embeddings=4096",
    ),
    row(
        "segformer",
        "segformer-b0",
        "depths?=2,2,2,2 hidden_sizes?=32,64,160,256 num_attention_heads?=1,2,5,8 sr_ratios?=8,4,2,1 decoder_hidden_size?=256",
    ),
    row(
        "siglip2",
        "siglip2-base-naflex",
        "vision_config.hidden_size?=768 vision_config.intermediate_size?=3072 vision_config.num_hidden_layers?=12 vision_config.num_attention_heads?=12 vision_config.num_patches?=256 vision_config.patch_size?=16 text_config.vocab_size=256000 text_config.hidden_size?=768 text_config.intermediate_size?=3072 text_config.num_hidden_layers?=12 text_config.num_attention_heads?=12",
    ),
    row(
        "smolvlm",
        "smolvlm2-2.2b",
        "vision_config.hidden_size?=1152 vision_config.intermediate_size=4304 vision_config.num_hidden_layers=27 vision_config.num_attention_heads?=16 vision_config.image_size=384 vision_config.patch_size=14 text_config.vocab_size=49280 text_config.hidden_size=2048 text_config.intermediate_size=8192 text_config.num_hidden_layers=24 text_config.num_attention_heads?=32 text_config.num_key_value_heads?=32 scale_factor=3",
    ),
    row(
        "speecht5",
        "speecht5-tts",
        "vocab_size?=81 hidden_size?=768 encoder_layers?=12 decoder_layers?=6 encoder_ffn_dim?=3072 decoder_ffn_dim?=3072 num_mel_bins?=80 reduction_factor?=2 use_guided_attention_loss?=true",
    ),
    row(
        "swin",
        "swin-tiny-hf",
        "image_size?=224 patch_size?=4 embed_dim?=96 depths?=2,2,6,2 num_heads?=3,6,12,24 window_size?=7 use_absolute_embeddings?=false encoder_stride?=32 num_layers?=4 hidden_size?=768",
    ),
    row(
        "swinv2",
        "swinv2-tiny",
        "image_size=256 patch_size?=4 embed_dim?=96 depths?=2,2,6,2 num_heads?=3,6,12,24 window_size=8 pretrained_window_sizes?=0,0,0,0 use_absolute_embeddings?=false encoder_stride?=32 num_layers?=4 hidden_size?=768",
    ),
    row(
        "table-transformer",
        "table-transformer-detection",
        "d_model?=256 encoder_layers?=6 decoder_layers?=6 encoder_ffn_dim?=2048 decoder_ffn_dim?=2048 num_queries=15 dilation?=false auxiliary_loss?=false backbone_config.backbone?=resnet18 backbone?=resnet18",
    ),
    row(
        "unispeech-sat",
        "unispeech-sat-base",
        "vocab_size?=32 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 conv_dim?=512,512,512,512,512,512,512 conv_stride?=5,2,2,2,2,2,2 conv_kernel?=10,3,3,3,3,2,2 conv_bias?=false",
    ),
    row(
        "vision-encoder-decoder",
        "trocr-base",
        "encoder.hidden_size?=768 encoder.intermediate_size?=3072 encoder.num_hidden_layers?=12 encoder.num_attention_heads?=12 encoder.image_size=384 encoder.patch_size?=16 encoder.qkv_bias=false decoder.vocab_size?=50265 decoder.d_model?=1024 decoder.decoder_layers?=12 decoder.decoder_ffn_dim?=4096 decoder.cross_attention_hidden_size=768 encoder.model_type?=vit decoder.model_type?=trocr",
    ),
    row(
        "wav2vec2",
        "wav2vec2-base",
        "vocab_size?=32 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 conv_dim?=512,512,512,512,512,512,512 conv_stride?=5,2,2,2,2,2,2 conv_kernel?=10,3,3,3,3,2,2 conv_bias?=false add_adapter?=false",
    ),
    row(
        "wav2vec2-bert",
        "w2v-bert-2.0",
        "vocab_size?=32 hidden_size?=1024 intermediate_size?=4096 num_hidden_layers?=24 num_attention_heads?=16 feature_projection_input_dim?=160 position_embeddings_type?=relative_key add_adapter?=false",
    ),
    row(
        "wavlm",
        "wavlm-base",
        "vocab_size?=32 hidden_size?=768 num_hidden_layers?=12 num_attention_heads?=12 intermediate_size?=3072 conv_dim?=512,512,512,512,512,512,512 conv_stride?=5,2,2,2,2,2,2 conv_kernel?=10,3,3,3,3,2,2 conv_bias?=false num_buckets?=320 add_adapter?=false",
    ),
    row(
        "xlnet",
        "xlnet-base-cased",
        "d_model=768 n_layer=12 n_head=12 d_inner=3072 vocab_size?=32000",
    ),
    row(
        "yolos",
        "yolos-tiny",
        "hidden_size=192 intermediate_size=768 num_hidden_layers?=12 num_attention_heads=3 image_size=800,1333 patch_size?=16 num_detection_tokens?=100 use_mid_position_embeddings=false auxiliary_loss?=false",
    ),
];
