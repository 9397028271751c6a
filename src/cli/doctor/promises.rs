//! The features that Warpsmith promises, and whether they work here.

use serde::Serialize;

use super::compiler::CompilerFacts;
use super::evaluator::EvaluatorFacts;
use super::facts::DoctorFacts;

/// One of the features.
#[derive(Debug, Serialize)]
pub(super) struct Promise {
    pub(super) name: &'static str,
    pub(super) state: PromiseState,
    /// A sentence about its state.
    pub(super) detail: String,
    /// Advice for the user, most important first.
    pub(super) remedies: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum PromiseState {
    /// The feature works.
    Works,
    /// Something is missing.
    Missing,
    /// The feature is set up; whether it works was not checked.
    Set,
    /// The feature is optional and not set up.
    Off,
}

pub(super) fn of(facts: &DoctorFacts) -> Vec<Promise> {
    let asked = facts.compiler.as_ref().map(compiling);
    [checking(facts), optimizing(facts), model(facts)].into_iter().chain(asked).collect()
}

fn checking(facts: &DoctorFacts) -> Promise {
    let target = &facts.target;
    let install = "install Triton into the project's environment, or set `triton-version`".to_owned();
    let (detail, remedies) = match (target.from, target.described) {
        ("settings", true) => (format!("against Triton {}, as the settings say", target.table), Vec::new()),
        ("installed", true) => (format!("against Triton {}, as installed", target.table), Vec::new()),
        ("none", _) => ("against what any known Triton version has; none is installed here".to_owned(), vec![install]),
        ("installed", false) if facts.python.as_ref().is_some_and(|python| !python.release) => {
            (format!("against Triton {}, only definite findings: a snapshot is installed", target.table), Vec::new())
        }
        _ => (
            format!("only definite findings: no table describes this Triton version (nearest: {})", target.table),
            vec!["a newer Warpsmith may; or set `triton-version` to a release that is described".to_owned()],
        ),
    };
    if let Some(error) = &facts.broken_settings {
        let remedies = vec![format!("settings that can be used: {error}")];
        return Promise {
            name: "Checking",
            state: PromiseState::Missing,
            detail: "not with these settings; it needs".to_owned(),
            remedies,
        };
    }
    Promise { name: "Checking", state: PromiseState::Works, detail, remedies }
}

fn optimizing(facts: &DoctorFacts) -> Promise {
    if let Some(found) = &facts.evaluator {
        return optimizing_elsewhere(facts, found);
    }
    let mut remedies = Vec::new();
    if let Some(why) = &facts.no_device {
        remedies.push(format!("a CUDA device: {why}"));
    }
    match &facts.python {
        None => remedies.push("a Python interpreter: set `python`, or make `.venv` with torch and Triton".to_owned()),
        Some(python) if !python.exists => {
            remedies.push(format!("a Python interpreter: {} does not exist", python.executable.display()));
        }
        Some(python) => {
            if python.triton.is_none() {
                remedies.push(format!("Triton: {} -m pip install triton", python.executable.display()));
            }
        }
    }
    // Kernels that are launched by themselves are judged without torch.
    let torch = facts.python.as_ref().filter(|python| python.exists && !python.torch).map(|python| {
        let what = "to judge functions that launch kernels, too, torch";
        format!("{what}: {} -m pip install torch", python.executable.display())
    });
    let alone = if torch.is_some() { "kernels that a comment launches by themselves, " } else { "" };
    let simulated = facts.devices.iter().any(judge::Device::is_simulated);
    let (state, detail) = match facts.devices.first() {
        Some(device) if remedies.is_empty() && simulated => (
            PromiseState::Works,
            format!("{alone}on {}, a simulated device for tests: its times mean nothing", device.name),
        ),
        Some(device) if remedies.is_empty() => {
            (PromiseState::Works, format!("{alone}on {}; {}; {}", device.name, sanitizer(facts), profiler(facts)))
        }
        _ => (PromiseState::Missing, "kernels cannot be run and measured here; it needs".to_owned()),
    };
    remedies.extend(torch);
    Promise { name: "Optimizing", state, detail, remedies }
}

fn optimizing_elsewhere(facts: &DoctorFacts, found: &EvaluatorFacts) -> Promise {
    let name = found.name();
    let python = facts.python.as_ref().map_or("python".into(), |python| python.executable.display().to_string());
    let lacks_ray = found.pool.as_ref().is_some_and(|pool| pool.ray.is_none());
    let install = || format!("Ray: {python} -m pip install 'ray[client]', in the version that the cluster has");
    let (state, detail, remedies) = match &found.answer {
        Some(Ok(there)) => (PromiseState::Works, format!("on {there}, through {name}"), vec![]),
        Some(Err(why)) => {
            (PromiseState::Missing, format!("{name} leads to nothing that judges; it needs"), vec![why.clone()])
        }
        None if lacks_ray => (PromiseState::Missing, format!("through {name}; it needs"), vec![install()]),
        None => (
            PromiseState::Set,
            format!("through {name}"),
            vec!["`warpsmith doctor --evaluator` starts it and shows its devices".to_owned()],
        ),
    };
    Promise { name: "Optimizing", state, detail, remedies }
}

fn sanitizer(facts: &DoctorFacts) -> String {
    let python = facts.python.as_ref().map(|python| python.executable.as_path());
    match judge::sanitizer(python) {
        Some(path) => format!("what is offered is run under {}", path.display()),
        None => "what is offered is not run under compute-sanitizer, which is not on this machine".to_owned(),
    }
}

fn profiler(facts: &DoctorFacts) -> String {
    let python = facts.python.as_ref().map(|python| python.executable.as_path());
    match judge::profiler(python) {
        Some(path) => format!("what bounds a kernel is counted by {}, where that is allowed", path.display()),
        None => "the bound of a kernel is estimated from its time alone, since ncu is not installed".to_owned(),
    }
}

fn model(facts: &DoctorFacts) -> Promise {
    let model = &facts.model;
    let unset_key = model.unset_key();
    let (state, detail, remedies) = match (model.place(), &model.answer) {
        (None, answer) => (
            if answer.is_some() { PromiseState::Missing } else { PromiseState::Off },
            "none is set; everything else works without, and nothing is sent anywhere".to_owned(),
            vec!["to use one, set `model.base-url` and `model.name` (and `model.api-key-env`)".to_owned()],
        ),
        (Some(place), Some(answer)) if answer.good => {
            (PromiseState::Works, format!("{place}: {}", answer.detail), vec![])
        }
        (Some(place), Some(answer)) => (PromiseState::Missing, format!("{place}: {}", answer.detail), vec![]),
        (Some(place), None) => (
            if unset_key.is_some() { PromiseState::Missing } else { PromiseState::Set },
            place,
            vec!["`warpsmith doctor --model` tests whether it answers".to_owned()],
        ),
    };
    let key = unset_key.map(|name| format!("the environment variable `{name}`, which should hold the key, is not set"));
    Promise { name: "Language model", state, detail, remedies: key.into_iter().chain(remedies).collect() }
}

fn compiling(facts: &CompilerFacts) -> Promise {
    let (state, detail) = match (&facts.triton, facts.milliseconds, &facts.problem) {
        (Some(triton), Some((first, next)), _) => (
            PromiseState::Works,
            format!(
                "Triton {triton} compiles a small kernel in {next} ms (the first took {first} ms, with the import)"
            ),
        ),
        (_, _, Some(problem)) => (PromiseState::Missing, problem.clone()),
        _ => (PromiseState::Off, "`compiler.enabled` is off: Triton is not asked about kernels".to_owned()),
    };
    Promise { name: "Compiling", state, detail, remedies: facts.remedy.iter().cloned().collect() }
}
