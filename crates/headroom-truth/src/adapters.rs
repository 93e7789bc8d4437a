//! PEFT's methods, by the names of its own configurations and of the recorders.

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use headroom_scenario::{AdapterMethod, Lora};

/// The linear layers of a decoder.
const PROJECTIONS: &str = "q_proj k_proj v_proj o_proj gate_proj up_proj down_proj";

/// An adapter's configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Adapters {
    pub r: Option<u64>,
    pub init_r: Option<u64>,
    #[serde(alias = "targets", deserialize_with = "listed")]
    pub target_modules: Option<Vec<String>>,
    pub modules_to_save: Vec<String>,
    pub feedforward_modules: Vec<String>,
    pub lora_dropout: f64,
    pub use_dora: bool,
    /// DEFT without what is put in.
    pub para: bool,
    pub use_bdlora: Option<IgnoredAny>,
    #[serde(alias = "bs", alias = "oft_block_size", alias = "boft_block_size")]
    pub block_size: Option<u64>,
    #[serde(alias = "num_virtual_tokens", alias = "n_frequency")]
    pub n: Option<u64>,
    pub token_indices: Vec<u64>,
    /// A switch, or the name of a way.
    #[serde(alias = "init")]
    pub init_weights: Option<Value>,
}

/// A list of names. A string such as "all-linear" selects the default.
fn listed<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

pub fn method(kind: &str) -> Option<AdapterMethod> {
    Some(match kind {
        "qlora" | "gptq-lora" => AdapterMethod::Lora,
        "bone" => AdapterMethod::Miss,
        "fourier" => AdapterMethod::FourierFt,
        "lntuning" | "ln_tuning" => AdapterMethod::LnTuning,
        "prefixtuning" => AdapterMethod::Prefix,
        "trainabletokens" | "trainable_tokens" => AdapterMethod::TrainedTokens,
        other => return AdapterMethod::from_id(other),
    })
}

pub fn names(list: &str) -> Vec<String> {
    list.split(' ').map(String::from).collect()
}

impl Adapters {
    /// What PEFT makes of it, with its own defaults.
    pub fn lora(&self, method: AdapterMethod) -> Lora {
        use AdapterMethod as Method;
        let method = match method {
            Method::Lora if self.use_dora => Method::Dora,
            Method::Miss if self.init_weights.as_ref().is_some_and(|way| way == "bat") => {
                Method::MissBat
            }
            Method::Deft if self.para => Method::DeftPara,
            other => other,
        };
        let rank = match method {
            Method::AdaLora => self.init_r.unwrap_or(12),
            Method::Vera | Method::PVera => self.r.unwrap_or(256),
            Method::RandLora
            | Method::Shira
            | Method::HiRa
            | Method::GraLora
            | Method::Peanut
            | Method::Psoft => self.r.unwrap_or(32),
            Method::Miss | Method::MissBat => self.r.unwrap_or(64),
            Method::VbLora => self.r.unwrap_or(4),
            Method::FourierFt => self.n.unwrap_or(1000),
            Method::WaveFt => self.n.unwrap_or(2592),
            Method::Prefix => self.n.unwrap_or(20),
            Method::TrainedTokens => self.token_indices.len().max(1) as u64,
            _ => self.r.unwrap_or(8),
        };
        Lora {
            method,
            rank,
            block: self.block_size.unwrap_or(0),
            targets: self.target_modules.clone().unwrap_or_default(),
            modules_to_save: self.modules_to_save.clone(),
            feed_forward: self.feedforward_modules.clone(),
            dropout: self.lora_dropout,
            ..Lora::default()
        }
    }

    /// The same with the defaults of the recorders of simulated GPUs.
    pub fn recorded(&self, method: AdapterMethod) -> Lora {
        use AdapterMethod as Method;
        let rank = match method {
            Method::Vera | Method::RandLora | Method::Shira | Method::Miss | Method::VbLora => None,
            Method::PVera => Some(64),
            _ => Some(16),
        };
        let targets = match method {
            Method::Ia3 => Some(names("k_proj v_proj down_proj")),
            Method::Boft | Method::FourierFt => Some(names("q_proj v_proj")),
            _ => self.target_modules.clone(),
        };
        let tokens = (method == Method::Prefix).then_some(30);
        let mut lora = Self {
            r: self.r.or(rank),
            n: self.n.or(tokens),
            target_modules: targets.or_else(|| Some(names(PROJECTIONS))),
            ..self.clone()
        }
        .lora(method);
        if method == Method::TrainedTokens {
            lora.rank = 64;
        }
        lora
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[track_caller]
    fn check(kind: &str, settings: &Value, expected: (AdapterMethod, u64)) {
        let settings = Adapters::deserialize(settings).unwrap();
        let lora = settings.lora(method(kind).unwrap());
        assert_eq!((lora.method, lora.rank), expected);
    }

    #[test]
    fn a_method_is_its_own_and_not_lora() {
        let dora = json!({"r": 32, "use_dora": true, "target_modules": ["q_proj"]});
        check("lora", &dora, (AdapterMethod::Dora, 32));
        check("lora", &json!({"r": 64}), (AdapterMethod::Lora, 64));
        let prefix = json!({"num_virtual_tokens": 200});
        check("prefixtuning", &prefix, (AdapterMethod::Prefix, 200));
        check(
            "deft",
            &json!({"r": 8, "para": true}),
            (AdapterMethod::DeftPara, 8),
        );
        assert_eq!(method("lily"), None);
    }
}
