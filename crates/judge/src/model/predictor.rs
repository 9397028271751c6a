//! The predictor, which compiles candidates for a GPU that this machine does not have and uses the model's time in
//! place of a measurement.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use base::clock::now_milliseconds;
use protocol::runner::{Inputs, RunnerReply, RunnerRequest, Weights};
use protocol::{CompiledLaunches, Workload};
use runtime::python::ForkerError;

use super::{CallPrediction, Gpu, predict};
use crate::bench::Bench;
use crate::case::Task;
use crate::child_processes::RunnerProcess;
use crate::direct_launch::of_candidate;
use crate::limits::CandidateLimits;
use crate::locks::lock;
use crate::machine_code_cache::MachineCodeCache;
use crate::project_folder::project;
use crate::stop_reason::{Stop, unexpected_reply};
use crate::trials::title;
use crate::undecided::{Undecided, UndecidedCause};
use crate::verdict::{Check, Measured, Outcome, Reason, Verdict};

/// The note on every predicted verdict.
const NOTE: &str = "predicted by a model: neither run nor checked";

/// Judges candidates by the model.
pub(crate) struct Predictor {
    bench: Bench,
    gpu: Gpu,
    /// Predictions of originals, by text and call.
    originals: Mutex<HashMap<blake3::Hash, Arc<Mutex<Option<CallPrediction>>>>>,
    twins: MachineCodeCache,
}

impl Predictor {
    /// Starts the processes that compile for the GPU.
    ///
    /// # Errors
    /// Returns a [`ForkerError`] that names what is missing.
    pub(crate) fn start(
        python: &Path,
        gpu: Gpu,
        limits: CandidateLimits,
        waiting: &dyn Fn() -> bool,
    ) -> Result<Self, ForkerError> {
        let bench = Bench::start_simulated(python, &gpu, limits, waiting)?;
        Ok(Self { bench, gpu, originals: Mutex::default(), twins: MachineCodeCache::default() })
    }

    pub(crate) fn bench(&self) -> &Bench {
        &self.bench
    }

    /// The predicted verdict on a candidate, compared with its original.
    pub(crate) fn judge(&self, task: &Task) -> Verdict {
        let mut verdict = Verdict::undecided(UndecidedCause::Other, "there is no call to judge it with");
        verdict.notes.push(NOTE.to_owned());
        for workload in &task.workloads {
            match self.of_call(task, workload) {
                Ok(measured) => {
                    verdict.outcome = Outcome::Predicted;
                    verdict.measured.push(measured);
                }
                Err(Stop::Undecided(Undecided { cause, why })) => {
                    verdict.outcome = Outcome::Undecided { cause, why };
                    break;
                }
                Err(Stop::Refused(reason, evidence, line)) => {
                    verdict.outcome = Outcome::Refused { reason, evidence, line };
                    break;
                }
            }
        }
        let passed = verdict.outcome == Outcome::Predicted;
        let evidence = match &verdict.outcome {
            Outcome::Refused { evidence, .. } => evidence.clone(),
            _ => NOTE.to_owned(),
        };
        verdict.checks.push(Check { name: format!("compiles for the {}", self.gpu.name), passed, evidence });
        verdict
    }

    /// The predicted times of original and candidate.
    fn of_call(&self, task: &Task, workload: &Workload) -> Result<Measured, Stop> {
        let text = std::fs::read(&task.original).map_err(Undecided::from)?;
        let mut key = blake3::Hasher::new();
        key.update(&text).update(serde_json::to_string(workload).map_err(Undecided::from)?.as_bytes());
        let key = key.finalize();
        let known = Arc::clone(lock(&self.originals).entry(key).or_default());
        let original = {
            let mut known = lock(&known);
            match known.as_ref() {
                Some(known) => known.clone(),
                None => {
                    let fails = |stop| match stop {
                        Stop::Refused(_, evidence, _) => {
                            let why = format!("the original itself fails: {evidence}");
                            Undecided::new(UndecidedCause::Call, why).into()
                        }
                        stop @ Stop::Undecided(_) => stop,
                    };
                    let (drafts, _) = self.drafts((&task.original, &task.folder), workload, true).map_err(fails)?;
                    let time = predict(&drafts, &self.gpu).map_err(Undecided::original)?;
                    known.insert(time).clone()
                }
            }
        };
        let (drafts, code) = self.drafts((&task.candidate, &task.folder), &of_candidate(workload, task), false)?;
        let code = code.filter(|_| !task.effort.thorough).map(|code| format!("{key} {code}"));
        if let Some(twin) = code.as_ref().and_then(|code| self.twins.find(code)) {
            return Ok(twin);
        }
        let candidate = predict(&drafts, &self.gpu).map_err(|why| Stop::Refused(Reason::Run, why, None))?;
        if let Some(what) = candidate.lacks(&original) {
            return Err(Stop::Refused(Reason::Output, format!("by the model it does less: {what}"), None));
        }
        let measured = self.measured(workload, (original, candidate));
        if let Some(code) = code {
            self.twins.keep(code, &measured);
        }
        Ok(measured)
    }

    /// The compiled launches of a call, and a key of their machine code.
    fn drafts(
        &self,
        (file, folder): (&Path, &Path),
        workload: &Workload,
        trusted: bool,
    ) -> Result<(CompiledLaunches, Option<String>), Stop> {
        let bench = &self.bench;
        let name = if trusted { "original" } else { "candidate" };
        let readable = vec![file.to_owned(), project(folder)];
        let fence = bench.fence(name, trusted, readable)?;
        let start = |error: ForkerError| Undecided::from(error);
        let mut runner = RunnerProcess::start(&bench.forker, fence, &bench.shared_processes).map_err(start)?;
        let whose = (!trusted, Weights::default());
        let loaded = runner.load(file, folder, workload, whose, bench.limits.load)?;
        loaded.map_err(|raised| Stop::Refused(Reason::Load, raised.text, raised.line))?;
        let request = RunnerRequest::Compile { inputs: Inputs::default(), chosen: Vec::new(), drafts: true };
        match runner.ask(&request, bench.limits.compile)? {
            RunnerReply::Compiled { failed, drafts, code, .. } => match failed {
                Some(exception) => Err(Stop::Refused(Reason::Compile, exception.text, exception.line)),
                None if drafts.launches.is_empty() => {
                    Err(Stop::Refused(Reason::NoKernel, "the call launches no kernel of Triton's".to_owned(), None))
                }
                None => Ok((drafts, code)),
            },
            other => Err(unexpected_reply(other)),
        }
    }

    fn measured(&self, workload: &Workload, (original, candidate): (CallPrediction, CallPrediction)) -> Measured {
        let environment = self.bench.environment().clone();
        let at = u64::try_from(now_milliseconds() / 1000).unwrap_or(0);
        let (workload, count) = (title(workload), workload.count);
        let pairs = vec![(original.milliseconds, candidate.milliseconds)];
        let counted = Some((original.counted, candidate.counted));
        Measured { workload, count, pairs, counted, drift: 1.0, environment, at, ..Measured::default() }
    }
}
