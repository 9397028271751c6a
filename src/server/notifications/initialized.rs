//! The notification `initialized`: the client has the server's capabilities, and may be asked from now on.

use std::sync::Arc;

use serde_json::{Value, json};
use tower_lsp::gen_lsp_types as lsp;

use judge::Devices;

use crate::server::owner::Owner;
use crate::server::settings;

/// Patterns of the files whose changes the client reports.
const WATCHED: [&str; 8] = [
    "**/warpsmith.toml",
    "**/{pyproject,poetry}.toml",
    "**/pyvenv.cfg",
    "**/{uv,poetry,pdm}.lock",
    "**/{.pdm-python,.python-version}",
    "**/*triton*.dist-info/METADATA",
    "**/*.py",
    "**/.warpsmith/recorded",
];

/// Reads the skill memory, asks for settings, registers for changes, and begins to look for devices.
pub(crate) fn handle(owner: &mut Owner, _: lsp::InitializedParams) {
    owner.read_memory_later();
    owner.ask_for_settings();
    owner.tells_status = owner.capabilities.takes_status;
    let registration = |method: &str, options: Value| lsp::Registration {
        id: method.to_owned(),
        method: method.to_owned(),
        register_options: Some(options),
    };
    let mut registrations = Vec::new();
    if owner.capabilities.registers_configuration {
        let options = json!({ "section": settings::SECTION });
        registrations.push(registration("workspace/didChangeConfiguration", options));
    }
    if owner.capabilities.registers_watched_files {
        let watchers: Vec<Value> = WATCHED.iter().map(|glob| json!({ "globPattern": glob })).collect();
        registrations.push(registration("workspace/didChangeWatchedFiles", json!({ "watchers": watchers })));
    }
    if !registrations.is_empty() {
        owner.client.register(registrations);
    }
    let (find, events) = (Arc::clone(&owner.tools.devices), owner.events.clone());
    let find = move || {
        let devices = find();
        events.run(|owner| owner.devices_found(devices));
    };
    if let Err(error) = std::thread::Builder::new().name("devices".to_owned()).spawn(find) {
        owner.devices = Some(Devices::Missing(format!("could not look for CUDA devices: {error}")));
    }
}

impl Owner {
    /// Handles the end of the search for the devices of this machine.
    fn devices_found(&mut self, devices: Devices) {
        let is_there = devices.capability().is_some();
        self.devices = Some(devices);
        if is_there {
            self.refresh_lenses();
        }
    }
}
