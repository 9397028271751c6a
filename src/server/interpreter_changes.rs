//! The interpreter whose Triton gives the verdicts, and the consequences when it, or its Triton, changes.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime};

use tower_lsp::gen_lsp_types as lsp;
use tower_lsp::jsonrpc::Result;

use compiler::ServiceStatus;
use model::analysis::verdict::FrontEndVerdict;

use super::interpreters::Interpreter;
use super::owner::Owner;
use super::reply::refused;
use super::unit::Unit;

/// Least time between two looks at the interpreters when nothing was saved or set.
const PAUSE: Duration = Duration::from_secs(3);

impl Owner {
    /// The interpreter of a unit, if it has Triton.
    pub(crate) fn interpreter(&mut self, unit: &Unit) -> Option<Interpreter> {
        let resolved = self.resolved(unit);
        let Some(environment) = &resolved.environment else {
            self.interpreters.missing =
                Some((None, "no Python was found; set `python` to the project's interpreter".to_owned()));
            return None;
        };
        let python = environment.python.clone();
        let Some(triton) = environment.triton else {
            let why = format!(
                "{} has no Triton; install it there or set `python` to the interpreter that has it",
                python.display()
            );
            self.interpreters.missing = Some((Some(python), why));
            return None;
        };
        self.interpreters.missing = None;
        let cores = resolved.settings.compiler.cores;
        Some(Interpreter { python, triton, installed: environment.installed, cores })
    }

    /// Whether kernels of a unit may be compiled on request.
    ///
    /// # Errors
    /// Returns an error with the reason when they may not.
    pub(crate) fn may_compile(&mut self, unit: &Unit) -> Result<()> {
        if !self.trusted {
            let why = "this workspace is not trusted, and compiling runs constants and decorators of the file";
            return Err(refused(why.to_owned()));
        }
        if !self.resolved(unit).settings.compiler.enabled {
            return Err(refused("the setting `compiler.enabled` is off".to_owned()));
        }
        Ok(())
    }

    /// The interpreter of a unit, for a request that waits for its answer.
    ///
    /// # Errors
    /// Returns an error with the reason when the interpreter cannot be asked.
    pub(crate) fn interpreter_to_ask(&mut self, unit: &Unit) -> Result<Interpreter> {
        let nobody = || refused("no Python with Triton was found; name one in the setting `python`".to_owned());
        let interpreter = self.interpreter(unit).ok_or_else(nobody)?;
        match self.compiler.unfit() {
            Some((unfit, why)) if unfit == interpreter.python => {
                Err(refused(format!("Triton cannot be used in {} ({why})", unfit.display())))
            }
            _ => Ok(interpreter),
        }
    }

    /// Tells the user once for each interpreter why it cannot be asked.
    pub(crate) fn tell_unfit(&mut self, python: Option<PathBuf>, why: &str) {
        if !self.interpreters.told.contains(&python) {
            let first = why.lines().next().unwrap_or_default();
            self.client.show(lsp::MessageType::Info, format!("Warpsmith does without Triton's own errors: {first}"));
            self.interpreters.told.push(python);
        }
    }

    /// Looks for changed interpreters at a quiet moment, but not often.
    pub(crate) fn look_for_interpreters_sometimes(&mut self) {
        if self.interpreters.looked.is_none_or(|looked| looked.elapsed() >= PAUSE) {
            self.look_for_interpreters();
        }
    }

    /// Looks for changed interpreters and changes of their packages.
    pub(crate) fn look_for_interpreters(&mut self) {
        self.interpreters.looked = Some(Instant::now());
        if self.settings.refresh_environments(&self.tools) {
            tracing::info!("the interpreter or its Triton has changed");
            self.check_all_again();
            self.compile_all_later();
        }
        let Some(service) =
            self.compiler.service.as_ref().filter(|one| matches!(one.status(), ServiceStatus::Unfit(_)))
        else {
            self.interpreters.unfit = None;
            return;
        };
        // The missing package may be installed by now.
        let python = service.python().to_owned();
        if self.note_unfit(&python) {
            self.interpreters.unfit = None;
            self.compiler.service = None;
            self.compile_all_later();
        }
    }

    /// Notes the packages of an unfit interpreter. Returns whether they have changed.
    pub(crate) fn note_unfit(&mut self, python: &Path) -> bool {
        let packages: Vec<_> = self.settings.packages_of(python).iter().map(|path| modified(path)).collect();
        let before = self.interpreters.unfit.replace(packages);
        before.is_some() && before != self.interpreters.unfit
    }

    /// Queues all kernels without a verdict, in all files.
    pub(crate) fn compile_all_later(&mut self) {
        let all = self.documents.all();
        self.interpreters.of.retain(|uri, _| all.contains(uri));
        all.iter().for_each(|uri| self.compile_later(uri));
    }

    /// Drops the verdicts of another interpreter about the kernels of a unit.
    pub(crate) fn forget_verdicts_of_others(&mut self, unit: Rc<Unit>, now: Option<&Interpreter>) {
        let uri = unit.uri.clone();
        if self.interpreters.of.get(&uri) == now {
            return;
        }
        match now {
            Some(now) => self.interpreters.of.insert(uri.clone(), now.clone()),
            None => self.interpreters.of.remove(&uri),
        };
        let forgotten = unit.module.kernels.iter().filter(|kernel| FrontEndVerdict::forget(kernel)).count();
        drop(unit);
        if forgotten > 0 {
            self.show_again(&uri);
        }
    }

    /// Updates the findings that the editor shows for a file.
    pub(crate) fn show_again(&mut self, uri: &lsp::Uri) {
        self.documents.forget_findings_of(uri);
        if !self.capabilities.pulls_diagnostics {
            self.unpublished.insert(uri.clone());
        } else if self.capabilities.refreshes_diagnostics {
            self.client.refresh_diagnostics();
        }
    }
}

fn modified(folder: &Path) -> Option<SystemTime> {
    std::fs::metadata(folder).and_then(|metadata| metadata.modified()).ok()
}
