//! The settings of the language model.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

// Examples in the schema. The derive macro accepts names of constants, but no lists, unless another crate enables a
// feature of `syn`.
const OTHER_MODELS: &[&str] = &["qwen3-coder:7b"];
const TEMPERATURES: &[f64] = &[0.3, 1.0];
const KEY_COMMAND: &[&str] = &["pass", "show", "openai"];

/// The protocol of a model's provider.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Chat completions, the protocol of OpenAI and most other providers.
    #[default]
    Openai,
    /// Chat completions of Azure, with deployments.
    Azure,
    /// The messages protocol of Anthropic.
    Anthropic,
    /// The models of the editor.
    Editor,
    /// Replies from a file.
    Scripted,
}

/// The part of a file that is sent to a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sent {
    /// The kernels that are optimized, the function that launches them, and the parts of the file that these need.
    #[default]
    Kernel,
    /// The whole file.
    File,
}

/// The language model to use, if any.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelSettings {
    /// The protocol: `openai` (chat completions: OpenAI, vLLM, SGLang, Ollama, LM Studio, gateways), `azure`,
    /// `anthropic`, `editor` for the models of the editor, or `scripted` for replies from a file.
    #[schemars(with = "String", extend("enum" = ["openai", "azure", "anthropic", "editor", "scripted"]))]
    pub provider: Provider,
    /// The provider's name of the model; for Azure the name of the deployment, for `editor` the id or the family of the
    /// model (by default, the editor chooses one).
    #[schemars(example = &"qwen3-coder:30b")]
    pub name: Option<String>,
    /// Further models of the same provider, which take turns with the first one.
    #[schemars(example = OTHER_MODELS)]
    pub also: Vec<String>,
    /// The maximum share of a search's candidates that come from models; the others come from built-in skills. 0 means
    /// none, 1 means all.
    #[schemars(range(min = 0, max = 1))]
    pub share: f64,
    /// The part of a file that is sent: `kernel` (the kernels, the function that launches them, and the parts of the
    /// file that these need) or `file` (the whole file).
    #[schemars(with = "String", extend("enum" = ["kernel", "file"]))]
    pub send: Sent,
    /// The sampling temperatures of requests, used in turn; empty means the provider's default.
    #[schemars(example = TEMPERATURES)]
    pub temperatures: Vec<f64>,
    /// The maximum number of tokens in a prompt, as an estimate.
    #[schemars(range(min = 1000))]
    pub prompt_tokens: usize,
    /// A folder with your own prompts (`small.md`, `large.md`, `repair.md`, `system.md` or `write.md`), relative to the
    /// settings file.
    #[schemars(example = &"prompts")]
    pub prompts: Option<PathBuf>,
    /// The maximum number of further requests after a reply that cannot be used; each describes the defect of the
    /// reply.
    #[schemars(range(max = 10))]
    pub corrections: u32,
    /// The maximum number of attempts of a model to repair one of its own candidates that does not compile.
    #[schemars(range(max = 10))]
    pub repairs: u32,
    /// Whether all requests to models and their replies are stored with the run in `.warpsmith/runs`.
    pub transcripts: bool,
    /// The base address of the provider, such as `http://localhost:11434/v1`. Nothing is sent anywhere unless this is
    /// set or the provider is `editor`.
    #[schemars(example = &"http://localhost:11434/v1")]
    pub base_url: Option<String>,
    /// The name of the environment variable that contains the API key.
    #[schemars(example = &"OPENAI_API_KEY")]
    pub api_key_env: Option<String>,
    /// A command that prints the API key, as a list of words; it is run without a shell. `api-key-env` takes precedence
    /// if it is set.
    #[schemars(example = KEY_COMMAND)]
    pub key_command: Vec<String>,
    /// The version of the API of Azure or Anthropic. Default: `2024-10-21` for Azure, `2023-06-01` for Anthropic.
    #[schemars(example = &"2024-10-21")]
    pub api_version: Option<String>,
    /// The file with the replies of a `scripted` model, relative to the settings file.
    #[schemars(example = &"replies.toml")]
    pub script: Option<PathBuf>,
    /// A file (PEM) with the certificates of authorities that are trusted in addition to those of the system, relative
    /// to the settings file.
    #[schemars(example = &"company-ca.pem")]
    pub ca_file: Option<PathBuf>,
    /// The maximum number of tokens in a reply, including the model's reasoning.
    #[schemars(range(min = 16))]
    pub max_tokens: u64,
    /// The maximum number of times that a request is repeated when the provider is overloaded or cannot be reached.
    #[schemars(range(max = 20))]
    pub retries: u32,
    /// The time limits of requests.
    pub timeouts: ModelTimeouts,
    /// The rate limits of requests.
    pub limits: ModelLimits,
    /// The prices of the model, in dollars per million tokens.
    pub prices: ModelPrices,
    /// The maximum amounts to spend. The highest possible cost of a request is reserved before it is sent; a request
    /// that exceeds a budget is not sent.
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

/// The time limits of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelTimeouts {
    /// The maximum time to connect, in seconds.
    #[schemars(range(min = 0.1))]
    pub connect: f64,
    /// The maximum time until the first byte of a reply, in seconds; a model that must be loaded first or that reasons
    /// takes long.
    #[schemars(range(min = 0.1))]
    pub first: f64,
    /// The maximum time between two parts of a reply, in seconds.
    #[schemars(range(min = 0.1))]
    pub between: f64,
    /// The maximum time for the whole reply, in seconds.
    #[schemars(range(min = 0.1))]
    pub whole: f64,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self { connect: 10.0, first: 180.0, between: 60.0, whole: 900.0 }
    }
}

/// The rate limits of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelLimits {
    /// The maximum number of simultaneous requests.
    #[schemars(range(min = 1))]
    pub parallel: usize,
    /// The maximum number of requests per minute; 0 means no limit.
    pub requests_per_minute: u64,
    /// The maximum number of tokens per minute, of requests and replies together; 0 means no limit.
    pub tokens_per_minute: u64,
}

impl Default for ModelLimits {
    fn default() -> Self {
        Self { parallel: 4, requests_per_minute: 0, tokens_per_minute: 0 }
    }
}

/// The prices of the model, in dollars per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelPrices {
    /// The price of the tokens that are sent.
    #[schemars(range(min = 0, max = 100_000))]
    pub input: f64,
    /// The price of the tokens that are received.
    #[schemars(range(min = 0, max = 100_000))]
    pub output: f64,
    /// The price of sent tokens that the provider has cached from an earlier request. Default: the price `input`.
    #[schemars(range(min = 0, max = 100_000), example = &0.5)]
    pub cached: Option<f64>,
}

/// The maximum amounts to spend; 0 means no limit. The limits in dollars apply only if `model.prices` are set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelBudget {
    /// The maximum number of tokens in one run; 0 means no limit.
    pub run_tokens: u64,
    /// The maximum cost of one run, in dollars; 0 means no limit. It applies only if `model.prices` are set.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub run_dollars: f64,
    /// The maximum number of tokens in one day (UTC), for all runs of this user together; 0 means no limit.
    pub day_tokens: u64,
    /// The maximum cost in one day (UTC), for all runs of this user together, in dollars; 0 means no limit. It applies
    /// only if `model.prices` are set.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub day_dollars: f64,
}

impl Default for ModelBudget {
    fn default() -> Self {
        Self { run_tokens: 2_000_000, run_dollars: 5.0, day_tokens: 20_000_000, day_dollars: 20.0 }
    }
}
