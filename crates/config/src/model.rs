//! What can be set about a language model.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Examples of the schema. The derive macro reads names of constants, but no lists, unless another crate turns a feature of `syn` on.
const OTHER_MODELS: &[&str] = &["qwen3-coder:7b"];
const TEMPERATURES: &[f64] = &[0.3, 1.0];
const KEY_COMMAND: &[&str] = &["pass", "show", "openai"];

/// Which protocol a model is spoken to in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Chat completions, as OpenAI has them and most others offer them.
    #[default]
    Openai,
    /// The same at Azure, with deployments.
    Azure,
    /// Anthropic's messages.
    Anthropic,
    /// The models that the editor has.
    Editor,
    /// Replies from a file.
    Scripted,
}

/// How much of a file a model is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sent {
    /// The kernels that are optimized, and what of the file they and the function that launches them need.
    #[default]
    Kernel,
    /// The whole file.
    File,
}

/// The language model to use, if any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelSettings {
    /// The protocol: `openai` (chat completions: OpenAI, vLLM, SGLang, Ollama, LM Studio, gateways), `azure`, `anthropic`,
    /// `editor` for the models that the editor itself has, or `scripted` for replies from a file.
    #[schemars(with = "String", extend("enum" = ["openai", "azure", "anthropic", "editor", "scripted"]))]
    pub provider: Provider,
    /// The model, as its provider calls it; for Azure the deployment, for an editor the id or
    /// the family (one that the editor chooses unless set).
    #[schemars(example = &"qwen3-coder:30b")]
    pub name: Option<String>,
    /// Further models of the same provider, which are asked in turns with the first.
    #[schemars(example = OTHER_MODELS)]
    pub also: Vec<String>,
    /// What share of a search's candidates may come from models; the rest come from built-in skills. 0 means none, 1 all.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// What is sent of a file: `kernel` (the kernels, the function that launches them, and what of the file these need) or `file`.
    #[schemars(with = "String", extend("enum" = ["kernel", "file"]))]
    pub send: Sent,
    /// How much chance there is in replies, taken in turns; empty for the provider's own.
    #[schemars(example = TEMPERATURES)]
    pub temperatures: Vec<f64>,
    /// How many tokens a prompt may have, by estimate.
    #[schemars(range(min = 1000))]
    pub prompt_tokens: usize,
    /// A folder with prompts of your own, `small.md`, `large.md`, `repair.md`, `system.md` or `write.md`, relative to the settings file.
    #[schemars(example = &"prompts")]
    pub prompts: Option<PathBuf>,
    /// How often a model is asked again when its reply cannot be used, with what is wrong with it.
    #[schemars(range(max = 10))]
    pub corrections: u32,
    /// How often a model may mend a candidate of its own that does not compile.
    #[schemars(range(max = 10))]
    pub repairs: u32,
    /// Whether all that models were asked and answered is kept beside the run in `.warpsmith/runs`.
    pub transcripts: bool,
    /// Base address, such as `http://localhost:11434/v1`. Nothing is sent anywhere unless it is set, or the provider is `editor`.
    #[schemars(example = &"http://localhost:11434/v1")]
    pub base_url: Option<String>,
    /// Name of the environment variable that holds the key.
    #[schemars(example = &"OPENAI_API_KEY")]
    pub api_key_env: Option<String>,
    /// A command that prints the key, as a list of words; it is run without a shell. `api-key-env` counts first, where that is set.
    #[schemars(example = KEY_COMMAND)]
    pub key_command: Vec<String>,
    /// The version of Azure's interface, or of Anthropic's. Default: `2024-10-21`, `2023-06-01`.
    #[schemars(example = &"2024-10-21")]
    pub api_version: Option<String>,
    /// The file with the replies of a `scripted` model, relative to the settings file.
    #[schemars(example = &"replies.toml")]
    pub script: Option<PathBuf>,
    /// A file of certificates (PEM) of authorities that are trusted besides those of the system, relative to the settings file.
    #[schemars(example = &"company-ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// How many tokens a reply may have at most, with what the model thinks before it.
    #[schemars(range(min = 16))]
    pub max_tokens: u64,
    /// How often a request is sent again when the provider is overloaded or cannot be reached.
    #[schemars(range(max = 20))]
    pub retries: u32,
    /// How long is waited.
    pub timeouts: ModelTimeouts,
    /// How much is asked at a time.
    pub limits: ModelLimits,
    /// What the model costs.
    pub prices: ModelPrices,
    /// What may be spent. Before a request its highest cost is set aside; one that does not fit is not sent.
    pub budget: ModelBudget,
}

impl ModelSettings {
    /// Whether a model is set that a search may ask.
    #[must_use]
    pub fn is_asked(&self) -> bool {
        self.share > 0.0
            && match self.provider {
                Provider::Editor => true,
                Provider::Scripted => self.script.is_some(),
                Provider::Openai | Provider::Azure | Provider::Anthropic => {
                    self.name.is_some() && self.base_url.is_some()
                }
            }
    }
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            provider: Provider::default(),
            name: None,
            also: Vec::new(),
            share: 0.5,
            send: Sent::default(),
            temperatures: vec![0.3, 0.8],
            prompt_tokens: 24_000,
            prompts: None,
            corrections: 2,
            repairs: 1,
            transcripts: true,
            base_url: None,
            api_key_env: None,
            key_command: Vec::new(),
            api_version: None,
            script: None,
            ca_file: None,
            max_tokens: 16_384,
            retries: 4,
            timeouts: ModelTimeouts::default(),
            limits: ModelLimits::default(),
            prices: ModelPrices::default(),
            budget: ModelBudget::default(),
        }
    }
}

/// How long is waited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelTimeouts {
    /// Seconds for a connection.
    #[schemars(range(min = 0.1))]
    pub connect: f64,
    /// Seconds until the first byte of a reply; a model that is loaded first, or that thinks, takes long.
    #[schemars(range(min = 0.1))]
    pub first: f64,
    /// Seconds between two pieces of a reply.
    #[schemars(range(min = 0.1))]
    pub between: f64,
    /// Seconds for the whole reply.
    #[schemars(range(min = 0.1))]
    pub whole: f64,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self { connect: 10.0, first: 180.0, between: 60.0, whole: 900.0 }
    }
}

/// How much is asked at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelLimits {
    /// Requests at once.
    #[schemars(range(min = 1))]
    pub parallel: usize,
    /// Requests a minute; 0 means any number.
    pub requests_per_minute: u64,
    /// Tokens a minute, of requests and replies together; 0 means any number.
    pub tokens_per_minute: u64,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { parallel: 4, requests_per_minute: 0, tokens_per_minute: 0 }
    }
}

/// What the model costs, in dollars for a million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelPrices {
    /// Of what is sent.
    #[schemars(range(min = 0, max = 100_000))]
    pub input: f64,
    /// Of what comes back.
    #[schemars(range(min = 0, max = 100_000))]
    pub output: f64,
    /// Of what is sent and was kept by the provider from an earlier request; as `input` unless set.
    #[schemars(range(min = 0, max = 100_000), example = &0.5)]
    pub cached: Option<f64>,
}

/// What may be spent; 0 means any amount. Dollars count where `model.prices` are set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelBudget {
    /// Tokens in one run.
    pub run_tokens: u64,
    /// Dollars in one run.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub run_dollars: f64,
    /// Tokens in a day (UTC), of all runs of this user together.
    pub day_tokens: u64,
    /// Dollars in a day (UTC), of all runs of this user together.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub day_dollars: f64,
}

impl Default for ModelBudget {
    fn default() -> Self {
        Self { run_tokens: 2_000_000, run_dollars: 5.0, day_tokens: 20_000_000, day_dollars: 20.0 }
    }
}
