"""The adapters that train.yaml asks for, as PEFT makes them."""

# What IA3 scales on its way in instead of out.
FEED_FORWARD = ("down_proj", "fc2", "c_proj", "wo", "dense_4h_to_h")


def configuration(method, rank, dropout, block, targets, task_type, vocabulary, **others):
    """PEFT's configuration of a method. `others` are exclude_modules and modules_to_save."""
    import peft

    r = {"r": rank}
    name, settings = {
        "lora": ("Lora", {**r, "lora_alpha": 2 * rank, "lora_dropout": dropout}),
        "dora": ("Lora", {**r, "lora_alpha": 2 * rank, "lora_dropout": dropout, "use_dora": True}),
        "adalora": ("AdaLora", {
            "init_r": rank, "target_r": max(1, rank * 2 // 3), "lora_alpha": 2 * rank, "lora_dropout": dropout,
            "total_step": 1000,
        }),
        "vera": ("Vera", {**r, "vera_dropout": dropout}),
        "pvera": ("Pvera", {**r, "pvera_dropout": dropout}),
        "randlora": ("RandLora", {**r, "randlora_dropout": dropout}),
        "loha": ("LoHa", {**r, "alpha": rank}),
        "lokr": ("LoKr", {**r, "alpha": rank}),
        "miss": ("Miss", {**r, "miss_dropout": dropout}),
        "delora": ("Delora", r),
        "hira": ("Hira", {**r, "hira_dropout": dropout}),
        "gralora": ("Gralora", {**r, "gralora_dropout": dropout}),
        "vblora": ("VBLoRA", {**r, "vblora_dropout": dropout}),
        "osf": ("OSF", {"effective_rank": rank}),
        "fourierft": ("FourierFT", {"n_frequency": rank}),
        "waveft": ("WaveFT", {"n_frequency": rank}),
        "road": ("Road", {}),
        "shira": ("Shira", r),
        "oft": ("OFT", {"oft_block_size": block}),
        "boft": ("BOFT", {"boft_block_size": block}),
        "c3a": ("C3A", {"block_size": block}),
        "ia3": ("IA3", {"feedforward_modules": [name for name in targets if name in FEED_FORWARD]}),
        "ln": ("LNTuning", {}),
        "prefix": ("PrefixTuning", {"num_virtual_tokens": rank}),
        "trainable-tokens": ("TrainableTokens", {"token_indices": list(range(vocabulary - rank, vocabulary))}),
    }[method]
    if method not in ("prefix", "trainable-tokens"):
        settings.update((key, value) for key, value in others.items() if value)
        if method != "ln":
            settings["target_modules"] = targets
    return getattr(peft, f"{name}Config")(task_type=task_type, **settings)
