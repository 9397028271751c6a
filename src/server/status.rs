//! `warpsmith/status`: the state of the compiler tier and the device, for editors that show it.

use std::path::PathBuf;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use tower_lsp::gen_lsp_types as lsp;

use judge::Devices;

use super::client::ClientCommand;
use super::owner::Owner;
use super::settings::{DocumentLocation, FolderSettings};

/// The name of the notification and of the request.
pub(super) const METHOD: &str = "warpsmith/status";

/// The server's status.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ServerStatus {
    compiler: CompilerStatus,
    device: DeviceStatus,
}

/// The device that kernels are measured on: a pool where one is set, else this machine's. Both fields are `None`
/// until the search for devices has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct DeviceStatus {
    name: Option<String>,
    /// The reason why there is no device.
    message: Option<String>,
}

/// The state of the compiler tier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct CompilerStatus {
    state: State,
    /// The path of the interpreter.
    python: Option<PathBuf>,
    /// The version of its Triton.
    triton: Option<String>,
    /// The missing part, if the tier cannot run.
    message: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
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
pub(super) struct StatusNotification;

impl lsp::Notification for StatusNotification {
    type Params = ServerStatus;
    const METHOD: lsp::LspNotificationMethod<'static> = lsp::LspNotificationMethod::Custom(METHOD);
    const MESSAGE_DIRECTION: lsp::MessageDirection = lsp::MessageDirection::ServerToClient;
}

impl Owner {
    /// The present status.
    pub(super) fn status(&mut self) -> ServerStatus {
        let set = if self.trusted { self.of_first_folder() } else { None };
        let pool = set.and_then(|resolved| runtime::pool::Pool::of(&resolved.settings.evaluator));
        let device = pool.map_or_else(
            || self.device_status(),
            |pool| DeviceStatus { name: Some(format!("the pool at {}", pool.address)), message: None },
        );
        ServerStatus { compiler: self.compiler_status(), device }
    }

    /// The devices of this machine; several of one kind are shown as one entry.
    fn device_status(&self) -> DeviceStatus {
        match &self.devices {
            None => DeviceStatus::default(),
            Some(Devices::Missing(why)) => DeviceStatus { name: None, message: Some(why.clone()) },
            Some(Devices::Found(devices)) => {
                let mut names: Vec<(&str, usize)> = Vec::new();
                for device in devices {
                    match names.iter_mut().find(|(name, _)| *name == device.name) {
                        Some((_, count)) => *count += 1,
                        None => names.push((&device.name, 1)),
                    }
                }
                let said = names.into_iter().map(|(name, count)| match count {
                    1 => name.to_owned(),
                    more => format!("{more} × {name}"),
                });
                DeviceStatus { name: Some(said.collect::<Vec<_>>().join(", ")), message: None }
            }
        }
    }

    fn compiler_status(&mut self) -> CompilerStatus {
        if let Some((python, why)) = &self.interpreters.missing {
            let message = Some(why.clone());
            return CompilerStatus { state: State::Unfit, python: python.clone(), triton: None, message };
        }
        let is_asking = self.compile.is_asking();
        let Some(service) = &self.compile.service else { return self.idle() };
        let python = Some(service.python().to_owned());
        let status = |state, triton: Option<&String>, message: Option<&String>| CompilerStatus {
            state,
            python,
            triton: triton.cloned(),
            message: message.cloned(),
        };
        match service.status() {
            compiler::ServiceStatus::Idle | compiler::ServiceStatus::Starting => status(State::Starting, None, None),
            compiler::ServiceStatus::Ready { triton } if is_asking => status(State::Compiling, Some(triton), None),
            compiler::ServiceStatus::Ready { triton } => status(State::Ready, Some(triton), None),
            compiler::ServiceStatus::Unfit(why) => status(State::Unfit, None, Some(why)),
        }
    }

    /// The compiler's status before the first question, from the first workspace folder.
    fn idle(&mut self) -> CompilerStatus {
        let mut idle = CompilerStatus { state: State::Idle, python: None, triton: None, message: None };
        if !self.trusted {
            idle.message = Some("the workspace is not trusted: nothing is run".to_owned());
            return idle;
        }
        if let Some(environment) = self.of_first_folder().and_then(|resolved| resolved.environment.clone()) {
            idle.python = Some(environment.python);
            idle.triton = environment.triton.map(|version| version.to_string());
        }
        idle
    }

    /// The settings of the first workspace folder.
    fn of_first_folder(&mut self) -> Option<Rc<FolderSettings>> {
        let workspace = self.folders.first().cloned()?;
        let root = super::from_lsp::path(&workspace)?;
        Some(
            self.settings
                .at(&DocumentLocation { folder: &root, root: &root, workspace: Some(&workspace) }, &self.tools),
        )
    }

    /// Sends the status to a client that accepts it, when it has changed.
    pub(super) fn tell_status(&mut self) {
        if !self.tells_status || self.waits_for_settings {
            return;
        }
        let status = self.status();
        if self.status_told.as_ref() != Some(&status) {
            self.client.send(ClientCommand::Status(status.clone()));
            self.status_told = Some(status);
        }
    }
}
