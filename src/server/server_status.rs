//! `warpsmith/status`: the state of the compiler tier and the device, for editors that show it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tower_lsp::gen_lsp_types as lsp;

/// The name of the notification and of the request.
pub(crate) const METHOD: &str = "warpsmith/status";

/// The server's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerStatus {
    pub(crate) compiler: CompilerStatus,
    pub(crate) device: DeviceStatus,
}

/// The device that kernels are measured on: a pool where one is set, else this machine's. Both fields are `None`
/// until the search for devices has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceStatus {
    pub(crate) name: Option<String>,
    /// The reason why there is no device.
    pub(crate) message: Option<String>,
}

/// The state of the compiler tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CompilerStatus {
    pub(crate) state: CompilerState,
    /// The path of the interpreter.
    pub(crate) python: Option<PathBuf>,
    /// The version of its Triton.
    pub(crate) triton: Option<String>,
    /// The missing part, if the tier cannot run.
    pub(crate) message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CompilerState {
    /// No question was asked yet.
    Idle,
    /// The process imports Triton.
    Starting,
    /// All questions are answered.
    Ready,
    /// A kernel is being compiled.
    Compiling,
    /// No question can be asked.
    Unfit,
}

/// The notification of the server's status.
pub(crate) struct StatusNotification;

impl lsp::Notification for StatusNotification {
    type Params = ServerStatus;
    const METHOD: lsp::LspNotificationMethod<'static> = lsp::LspNotificationMethod::Custom(METHOD);
    const MESSAGE_DIRECTION: lsp::MessageDirection = lsp::MessageDirection::ServerToClient;
}
