//! The request `warpsmith/status`, and the notification of the same name.

use std::rc::Rc;

use serde_json::Value;
use tower_lsp::jsonrpc::Result;

use judge::Devices;

use crate::server::from_lsp;
use crate::server::owner::Owner;
use crate::server::server_status::{CompilerState, CompilerStatus, DeviceStatus, ServerStatus, StatusNotification};
use crate::server::settings::{DocumentLocation, FolderSettings};

/// Answers the request.
pub(crate) fn handle(owner: &mut Owner, _: Value) -> Result<ServerStatus> {
    Ok(owner.status())
}

impl Owner {
    /// The present status.
    fn status(&mut self) -> ServerStatus {
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
            return CompilerStatus { state: CompilerState::Unfit, python: python.clone(), triton: None, message };
        }
        let is_asking = self.compiler.is_asking();
        let Some(service) = &self.compiler.service else { return self.idle() };
        let python = Some(service.python().to_owned());
        let status = |state, triton: Option<&String>, message: Option<&String>| CompilerStatus {
            state,
            python,
            triton: triton.cloned(),
            message: message.cloned(),
        };
        match service.status() {
            compiler::ServiceStatus::Idle | compiler::ServiceStatus::Starting => {
                status(CompilerState::Starting, None, None)
            }
            compiler::ServiceStatus::Ready { triton } if is_asking => {
                status(CompilerState::Compiling, Some(triton), None)
            }
            compiler::ServiceStatus::Ready { triton } => status(CompilerState::Ready, Some(triton), None),
            compiler::ServiceStatus::Unfit(why) => status(CompilerState::Unfit, None, Some(why)),
        }
    }

    /// The compiler's status before the first question, from the first workspace folder.
    fn idle(&mut self) -> CompilerStatus {
        let mut idle = CompilerStatus { state: CompilerState::Idle, python: None, triton: None, message: None };
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
        let root = from_lsp::path(&workspace)?;
        Some(
            self.settings
                .at(&DocumentLocation { folder: &root, root: &root, workspace: Some(&workspace) }, &self.tools),
        )
    }

    /// Sends the status to a client that accepts it, when it has changed.
    pub(crate) fn tell_status(&mut self) {
        if !self.tells_status || self.waits_for_settings {
            return;
        }
        let status = self.status();
        if self.status_told.as_ref() != Some(&status) {
            let news = status.clone();
            self.client.in_order(|client| async move { client.send_notification::<StatusNotification>(news).await });
            self.status_told = Some(status);
        }
    }
}
