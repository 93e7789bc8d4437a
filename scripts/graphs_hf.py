"""The models of transformers whose graphs scripts/graphs.py records: class, sizes, batch, and the configuration of the published
model in so far as it is not the class's own default."""
import torch

NO_AUGMENT = "SpecAugment's masks, whose places are drawn anew in each step (`mask_time_prob`)"
NO_PATHS = "stochastic depth (`drop_path_rate`)"
NO_LAYERDROP = dict(layerdrop=0.0, apply_spec_augment=False)


def words(top, least=3, **more):
    """Token ids as labels too; `more` are further inputs of the same shape."""

    def batch(b, s, device):
        ids = torch.randint(least, top, (b, s), device=device)
        extra = {key: torch.full((b, s), value, device=device) for key, value in more.items()}
        return dict(input_ids=ids, labels=ids.clone(), **extra)

    return batch


def padded(ids):
    """Every last sample is half as long: masks without padding are left away by the library."""
    mask = torch.ones_like(ids)
    mask[-1, ids.shape[1] // 2 :] = 0
    return mask


def masked(batch):
    def made(b, s, device):
        found = batch(b, s, device)
        return dict(found, attention_mask=padded(found["input_ids"]))

    return made


def speech(b, s, device):
    """Sixteen letters a second of 16,000 samples."""
    return dict(input_values=torch.randn(b, s, device=device), labels=torch.ones(b, s // 1024, dtype=torch.long, device=device))


def boxed(batch):
    def made(b, s, device):
        return dict(batch(b, s, device), bbox=torch.zeros(b, s, 4, dtype=torch.long, device=device))

    return made


def tagged(top):
    """A class of two for each token."""

    def batch(b, s, device):
        ids = torch.randint(3, top, (b, s), device=device)
        return dict(input_ids=ids, attention_mask=padded(ids), labels=torch.zeros_like(ids))

    return batch


def pictured(batch, side, name="pixel_values"):
    """The same with a square picture for each sample."""

    def made(b, s, device):
        return dict(batch(b, s, device), **{name: torch.randn(b, 3, side, side, device=device)})

    return made


def classified(b, s, device):
    return dict(pixel_values=torch.randn(b, 3, s, s, device=device), labels=torch.zeros(b, dtype=torch.long, device=device))


# Id, class, sizes, batch, what is left out, values of the configuration.
MODELS = {}


def hf(identity, kind, sizes, batch, leaves_out=None, loss=None, **values):
    MODELS[identity] = (kind, sizes, batch, leaves_out, loss, values)


IMAGENET = dict(num_labels=1000)

# --- speech: seconds are 16,000 samples ------------------------------------------------------------------------------

SECONDS = [(2, 80000), (2, 160000)]
hf("wav2vec2-base", "Wav2Vec2ForCTC", SECONDS, speech, NO_AUGMENT, **NO_LAYERDROP)
hf("hubert-base-ls960", "HubertForCTC", SECONDS, speech, NO_AUGMENT, **NO_LAYERDROP)
hf("wavlm-base", "WavLMForCTC", SECONDS, speech, NO_AUGMENT, **NO_LAYERDROP)
hf("unispeech-sat-base", "UniSpeechSatForCTC", SECONDS, speech, NO_AUGMENT, **NO_LAYERDROP)


def spectrum(b, s, device):
    return dict(input_values=torch.randn(b, 1024, 128, device=device), labels=torch.zeros(b, dtype=torch.long, device=device))


hf("ast-audioset", "ASTForAudioClassification", [(2, 1024)], spectrum, num_labels=527)

# --- documents -------------------------------------------------------------------------------------------------------

hf("layoutlm-base-uncased", "LayoutLMForTokenClassification", [(2, 256), (2, 512)], boxed(tagged(30522)))
hf("layoutlmv3-base", "LayoutLMv3ForTokenClassification", [(2, 128), (2, 256)], pictured(boxed(tagged(50265)), 224), vocab_size=50265,
   max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5)

# --- text ------------------------------------------------------------------------------------------------------------

TEXT = [(2, 256), (2, 512)]
hf("ernie-3.0-base-zh", "ErnieForMaskedLM", TEXT, masked(words(40000)), vocab_size=40000, max_position_embeddings=2048, type_vocab_size=4,
   use_task_id=True, task_type_vocab_size=3)
hf("nomic-embed-text-v1.5", "NomicBertForMaskedLM", TEXT, masked(words(30528)))

# --- decoders --------------------------------------------------------------------------------------------------------

LONG = [(2, 512), (2, 1024)]
hf("phi-3.5-moe", "PhimoeForCausalLM", LONG, words(32064), attention_bias=True, lm_head_bias=True, sliding_window=131072, use_cache=False)
hf("codegen-350m-mono", "CodeGenForCausalLM", LONG, words(51200), vocab_size=51200, n_embd=1024, n_layer=20, n_head=16, rotary_dim=32, use_cache=False)
hf("rwkv-4-169m", "RwkvForCausalLM", LONG, words(50277), vocab_size=50277, hidden_size=768, num_hidden_layers=12, use_cache=False)
hf("jamba-v0.1", "JambaForCausalLM", LONG, words(65536), use_cache=False)

# --- images ----------------------------------------------------------------------------------------------------------

SIDES = [(2, 224), (2, 256)]
hf("beit-base-p16-224-hf", "BeitForImageClassification", [(2, 224)], classified, NO_PATHS, use_relative_position_bias=True, drop_path_rate=0.0,
   use_absolute_position_embeddings=False, **IMAGENET)
hf("swin-tiny-hf", "SwinForImageClassification", [(2, 224)], classified, NO_PATHS, drop_path_rate=0.0, **IMAGENET)
hf("swinv2-tiny", "Swinv2ForImageClassification", [(2, 256)], classified, NO_PATHS, image_size=256, window_size=8, drop_path_rate=0.0, **IMAGENET)
hf("resnet-50-hf", "ResNetForImageClassification", SIDES, classified, **IMAGENET)
hf("resnet-18-hf", "ResNetForImageClassification", SIDES, classified, depths=[2, 2, 2, 2], hidden_sizes=[64, 128, 256, 512], layer_type="basic", **IMAGENET)
hf("convnext-tiny-hf", "ConvNextForImageClassification", SIDES, classified, **IMAGENET)
hf("convnextv2-tiny", "ConvNextV2ForImageClassification", SIDES, classified, **IMAGENET)
hf("mobilenet-v2-hf", "MobileNetV2ForImageClassification", SIDES, classified, num_labels=1001)
hf("mobilevit-small", "MobileViTForImageClassification", [(2, 256)], classified, **IMAGENET)
hf("regnet-y-040", "RegNetForImageClassification", SIDES, classified, **IMAGENET)


def seen(b, s, device):
    return dict(pixel_values=torch.randn(b, 3, s, s, device=device))


def of_last(model, batch):
    """The mean of the last hidden states, where the class has no loss."""
    return model(**batch).last_hidden_state.float().square().mean()


hf("dinov3-vits16", "DINOv3ViTModel", SIDES, seen, "a head: the loss is the mean of the last hidden states", of_last, num_register_tokens=4)

def configuration(identity):
    """The model's class and its configuration."""
    import transformers

    kind, _, _, _, _, values = MODELS[identity]
    if kind == "RwkvForCausalLM":
        own_rwkv()
    if kind == "JambaForCausalLM":
        import mamba_kernels

        mamba_kernels.install()
    found = getattr(transformers, kind)
    return found, found.config_class(**values)


def own_rwkv():
    """RWKV runs a kernel of its own where there is a GPU; what it allocates is in the function that calls it, which is taken as it is
    but for the question whether there is one."""
    import inspect
    import types

    from transformers.models.rwkv import modeling_rwkv as rwkv

    quiet = lambda *tensors: None
    names = ("forward", "forward_bf16", "forward_with_state", "forward_with_state_bf16", "backward", "backward_bf16")
    rwkv.rwkv_cuda_kernel = types.SimpleNamespace(max_seq_length=1024, **{name: quiet for name in names})
    for part in (rwkv.RwkvLinearAttention, rwkv.rwkv_linear_attention):
        exec(inspect.getsource(part).replace('!= "cuda"', '== "cpu"'), vars(rwkv))
    rwkv.is_ninja_available = lambda: False


def build(identity):
    kind, config = configuration(identity)
    return kind(config)
