//! What this machine has.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::model::ModelFacts;
use crate::api::{Certainty, Target};
use crate::evaluate::{self, Device, Devices, Drivers};
use crate::settings::Loaded;

/// What was found.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    /// Warpsmith's version.
    pub(super) version: &'static str,
    /// The settings file that holds here.
    pub(super) settings: Option<PathBuf>,
    pub(super) python: Option<PythonFacts>,
    /// What kernels are checked against.
    pub(super) target: TargetFacts,
    pub(super) devices: Vec<Device>,
    /// Why there is no device.
    pub(super) no_device: Option<String>,
    pub(super) drivers: Drivers,
    pub(super) model: ModelFacts,
}

/// The project's interpreter and what it has installed.
#[derive(Debug, Serialize)]
pub(super) struct PythonFacts {
    pub(super) executable: PathBuf,
    /// How it was found.
    pub(super) source: String,
    pub(super) triton: Option<String>,
    pub(super) torch: bool,
}

/// The Triton version checked against.
#[derive(Debug, Serialize)]
pub(super) struct TargetFacts {
    /// The release whose table is used.
    pub(super) table: String,
    /// Where the version comes from: `settings`, `installed` or `none`.
    pub(super) from: &'static str,
    /// Whether a table describes the version in use.
    pub(super) described: bool,
}

impl Facts {
    pub(super) fn gather(loaded: &Loaded, folder: &Path) -> Self {
        let python = python(loaded, folder);
        let installed = python.as_ref().and_then(|python| python.triton.as_ref()?.parse().ok());
        let (target, from) = match (loaded.settings.triton(), installed) {
            (Some(version), _) => (Target::of(version), "settings"),
            (None, Some(version)) => (Target::of(version), "installed"),
            (None, None) => (Target::newest(), "none"),
        };
        let (devices, no_device) = match evaluate::devices() {
            Devices::Found(devices) => (devices, None),
            Devices::Missing(why) => (Vec::new(), Some(why)),
        };
        Self {
            version: env!("CARGO_PKG_VERSION"),
            settings: loaded.path.clone(),
            python,
            target: TargetFacts {
                table: target.table.version.to_string(),
                from,
                described: target.certainty == Certainty::Known,
            },
            devices,
            no_device,
            drivers: evaluate::drivers(),
            model: ModelFacts::of(&loaded.settings.model),
        }
    }

    /// Names and values to show.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("Warpsmith", self.version.to_owned())];
        let path = |path: &Path| path.display().to_string();
        lines.push(("Settings", self.settings.as_deref().map_or("none, all is default".to_owned(), path)));
        match &self.python {
            Some(python) => {
                lines.push(("Python", format!("{} ({})", python.executable.display(), python.source)));
                lines.push(("Triton", python.triton.clone().unwrap_or_else(|| "not installed".to_owned())));
                lines.push(("torch", if python.torch { "installed" } else { "not installed" }.to_owned()));
            }
            None => lines.push(("Python", "not found".to_owned())),
        }
        for device in &self.devices {
            let (major, minor) = device.capability;
            lines.push(("GPU", format!("{}, compute capability {major}.{minor}", device.name)));
        }
        if let Some(why) = &self.no_device {
            lines.push(("GPU", why.clone()));
        }
        if let Some(version) = &self.drivers.cuda {
            lines.push(("CUDA driver", format!("supports CUDA {version}")));
        }
        if let Some(version) = &self.drivers.kernel {
            lines.push(("Kernel driver", version.clone()));
        }
        lines.push(("Model", self.model.base_url.clone().unwrap_or_else(|| "none set".to_owned())));
        lines
    }
}

fn python(_loaded: &Loaded, _folder: &Path) -> Option<PythonFacts> {
    None
}
