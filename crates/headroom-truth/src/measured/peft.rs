//! PEFT's methods, as its own comparison of them writes their settings.

use serde_json::Value;

use headroom_scenario::{AdapterMethod, Lora};

/// The adapters of a task that is a method's name and its settings; none for prompts, which stand before each sample.
pub(super) fn adapters(kind: &str, given: &Value) -> Result<Option<Lora>, String> {
    use AdapterMethod as Method;
    if given["use_bdlora"].is_object() && given["r"].is_null() {
        return Err("this variant of LoRA is not modelled".into());
    }
    let number = |name: &str, default| given[name].as_u64().unwrap_or(default);
    let rank = number("r", 8);
    let (method, rank) = match kind {
        "prompt_tuning" | "ptuning" | "adaptionprompt" => return Ok(None),
        "lora" | "qlora" | "gptq-lora" if given["use_dora"] == true => (Method::Dora, rank),
        "lora" | "qlora" | "gptq-lora" => (Method::Lora, rank),
        "dora" => (Method::Dora, rank),
        "adalora" => (Method::AdaLora, number("init_r", 12)),
        "vera" => (Method::Vera, number("r", 256)),
        "pvera" => (Method::PVera, number("r", 256)),
        "randlora" => (Method::RandLora, number("r", 32)),
        "loha" => (Method::LoHa, rank),
        "lokr" => (Method::LoKr, rank),
        "miss" | "bone" => (Method::Miss, number("r", 64)),
        "road" => (Method::Road, rank),
        "shira" => (Method::Shira, number("r", 32)),
        "oft" => (Method::Oft, rank),
        "boft" => (Method::Boft, rank),
        "c3a" => (Method::C3a, rank),
        "ia3" => (Method::Ia3, rank),
        "delora" => (Method::DeLora, rank),
        "hira" => (Method::HiRa, number("r", 32)),
        "gralora" => (Method::GraLora, number("r", 32)),
        "vblora" => (Method::VbLora, number("r", 4)),
        "fourierft" => (Method::FourierFt, number("n_frequency", 1000)),
        "waveft" => (Method::WaveFt, number("n_frequency", 2592)),
        "lntuning" | "ln_tuning" => (Method::LnTuning, rank),
        "prefixtuning" => (Method::Prefix, number("num_virtual_tokens", 20)),
        "trainabletokens" | "trainable_tokens" => {
            let rows = given["token_indices"].as_array().map_or(1, Vec::len);
            (Method::TrainedTokens, rows as u64)
        }
        other => return Err(format!("`{other}` is not modelled")),
    };
    let block = match method {
        Method::Oft => number("oft_block_size", 32),
        Method::Boft => number("boft_block_size", 4),
        Method::C3a => number("block_size", 256),
        _ => 0,
    };
    let names = |name: &str| -> Vec<String> {
        let listed = given[name].as_array();
        let text = |name: &Value| name.as_str().map(String::from);
        listed.map_or_else(Vec::new, |all| all.iter().filter_map(text).collect())
    };
    Ok(Some(Lora {
        method,
        rank,
        block,
        targets: names("target_modules"),
        modules_to_save: names("modules_to_save"),
        feed_forward: names("feedforward_modules"),
        dropout: given["lora_dropout"].as_f64().unwrap_or(0.0),
        ..Lora::default()
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::adapters;
    use headroom_scenario::AdapterMethod;

    #[track_caller]
    fn check(kind: &str, given: &serde_json::Value, expected: Option<(AdapterMethod, u64)>) {
        let found = adapters(kind, given).unwrap();
        assert_eq!(found.map(|lora| (lora.method, lora.rank)), expected);
    }

    #[test]
    fn a_method_is_its_own_and_not_lora() {
        let dora = json!({"r": 32, "use_dora": true, "target_modules": ["q_proj"]});
        check("lora", &dora, Some((AdapterMethod::Dora, 32)));
        check("lora", &json!({"r": 64}), Some((AdapterMethod::Lora, 64)));
        let prefix = json!({"num_virtual_tokens": 200});
        check("prefixtuning", &prefix, Some((AdapterMethod::Prefix, 200)));
        check("prompt_tuning", &prefix, None);
        assert!(adapters("deft", &json!({"r": 32})).is_err());
    }
}
