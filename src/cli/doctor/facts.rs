//! The facts about this machine.

use std::path::{Path, PathBuf};

use serde::Serialize;

use config::LoadedSettings;
use fence::LinuxFeatures;
use judge::{Device, Devices, Drivers};
use model::api::{TritonTarget, VersionCertainty};
use runtime::python::environment::{self, PythonEnvironment};
use runtime::python::state_folder;
use store::Store;

use super::compiler::CompilerFacts;
use super::evaluator::EvaluatorFacts;
use super::model::ModelFacts;
use super::python::PythonFacts;

/// The facts that were found.
#[derive(Debug, Serialize)]
pub(super) struct DoctorFacts {
    /// Warpsmith's version.
    pub(super) version: &'static str,
    /// The settings file that applies here.
    pub(super) settings: Option<PathBuf>,
    /// The reason why the settings file cannot be used.
    pub(super) broken_settings: Option<String>,
    pub(super) python: Option<PythonFacts>,
    /// The release that kernels are checked against.
    pub(super) target: TargetFacts,
    pub(super) devices: Vec<Device>,
    /// The reason why there is no device.
    pub(super) no_device: Option<String>,
    pub(super) drivers: Drivers,
    pub(super) model: ModelFacts,
    /// The place where kernels are judged, if it is not this machine.
    pub(super) evaluator: Option<EvaluatorFacts>,
    /// Whether Triton can be asked about kernels; `None` until that was tried.
    pub(super) compiler: Option<CompilerFacts>,
    pub(super) false_alarms: FalseAlarmFacts,
    /// The actions of candidates that the fence does not prevent here, as text.
    pub(super) unfenced: Vec<String>,
}

/// Errors reported by rules that Triton disproved.
#[derive(Debug, Serialize)]
pub(super) struct FalseAlarmFacts {
    pub(super) count: usize,
    /// The file that they are stored in.
    pub(super) file: PathBuf,
}

/// The Triton version checked against.
#[derive(Debug, Serialize)]
pub(super) struct TargetFacts {
    /// The release whose API table is used.
    pub(super) table: String,
    /// The source of the version: `settings`, `installed` or `none`.
    pub(super) from: &'static str,
    /// Whether a table describes the version in use.
    pub(super) described: bool,
}

impl DoctorFacts {
    pub(super) fn gather(loaded: &LoadedSettings, folder: &Path) -> Self {
        let environment = PythonEnvironment::of_project(loaded, folder);
        let target =
            environment::target_for(&loaded.settings, environment.as_ref()).unwrap_or_else(|_| TritonTarget::newest());
        let installed = environment.as_ref().and_then(|environment| environment.triton);
        let from = match (&loaded.settings.triton_version, installed) {
            (Some(_), _) => "settings",
            (None, Some(_)) => "installed",
            (None, None) => "none",
        };
        let (devices, no_device) = match judge::devices() {
            Devices::Found(devices) => (devices, None),
            Devices::Missing(why) => (Vec::new(), Some(why)),
        };
        let evaluator = EvaluatorFacts::of(&loaded.settings.evaluator, environment.as_ref());
        Self {
            version: env!("CARGO_PKG_VERSION"),
            settings: loaded.path.clone(),
            broken_settings: None,
            python: environment.map(PythonFacts::of),
            target: TargetFacts {
                table: target.table.version.to_string(),
                from,
                described: target.certainty == VersionCertainty::Known,
            },
            devices,
            no_device,
            drivers: judge::drivers(),
            model: ModelFacts::of(&loaded.settings.model),
            evaluator,
            compiler: None,
            false_alarms: FalseAlarmFacts::gather(),
            unfenced: LinuxFeatures::running().missing(),
        }
    }

    /// The names and values to show.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines = vec![("Warpsmith", self.version.to_owned())];
        let path = |path: &Path| path.display().to_string();
        lines.push((
            "Settings",
            match (&self.broken_settings, &self.settings) {
                (Some(error), _) => format!("cannot be used: {error}"),
                (None, Some(file)) => path(file),
                (None, None) => "none, all is default".to_owned(),
            },
        ));
        match &self.python {
            Some(python) => {
                let missing = if python.exists { "" } else { ", does not exist" };
                lines.push(("Python", format!("{} ({}{missing})", python.executable.display(), python.source)));
                let snapshot = if python.release { "" } else { ", a snapshot" };
                let triton = python.triton.as_ref().map(|version| format!("{version}{snapshot}"));
                lines.push(("Triton", triton.unwrap_or_else(|| "not installed".to_owned())));
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
        let FalseAlarmFacts { count, file } = &self.false_alarms;
        let kept =
            if *count == 0 { "none".to_owned() } else { format!("{count}, in {}; please report them", path(file)) };
        lines.push(("False alarms", kept));
        lines.push(("Fence", self.fence()));
        lines.push(("Model", self.model.place().unwrap_or_else(|| "none set".to_owned())));
        lines
    }
}

impl DoctorFacts {
    fn fence(&self) -> String {
        if self.unfenced.is_empty() {
            return "complete: a candidate reaches no files of the user's, no network and no other process".to_owned();
        }
        format!("incomplete; of a candidate that is run: {}", self.unfenced.join("; "))
    }
}

impl FalseAlarmFacts {
    fn gather() -> Self {
        let folder = state_folder();
        let file = folder.join("store.db");
        let is_kept = file.exists() || folder.join("false-alarms.jsonl").exists();
        let count = || Some(Store::of_user(&folder).ok()?.false_alarms().ok()?.len());
        Self { count: is_kept.then(count).flatten().unwrap_or(0), file }
    }
}
