//! Whether Triton's front end can be asked about kernels, and how fast it answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::json;

use compiler::protocol::{LoweringRequest, SourceFile};
use compiler::{CompilerSession, ServiceStatus};
use config::CompilerSettings;

use super::python::PythonFacts;

/// The time limit for Triton's import and answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A kernel that every release accepts.
const KERNEL: &str = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef k(x, B: tl.constexpr):\n    i = \
    tl.arange(0, B)\n    tl.store(x + i, tl.load(x + i) + 1)\n";

/// The result of asking Triton.
#[derive(Debug, Serialize)]
pub(super) struct CompilerFacts {
    /// Whether the settings enable the compiler tier.
    pub(super) enabled: bool,
    /// The version that answered.
    pub(super) triton: Option<String>,
    /// The time until the first answer, and the time of a second one, in milliseconds.
    pub(super) milliseconds: Option<(u128, u128)>,
    /// The reason why there is no answer, in one line.
    pub(super) problem: Option<String>,
    /// Advice for the user.
    pub(super) remedy: Option<String>,
}

/// Asks about a small kernel, twice.
pub(super) fn examine(settings: &CompilerSettings, python: Option<&PythonFacts>) -> CompilerFacts {
    let mut facts =
        CompilerFacts { enabled: settings.enabled, triton: None, milliseconds: None, problem: None, remedy: None };
    if !settings.enabled {
        return facts;
    }
    let (problem, remedy) = match python {
        None => ("there is no Python".to_owned(), "set `python` to the project's interpreter".to_owned()),
        Some(python) if !python.exists => {
            let missing = format!("{} does not exist", python.executable.display());
            (missing, "set `python` to the project's interpreter".to_owned())
        }
        Some(python) if python.triton.is_none() => {
            let install = format!("{} -m pip install triton", python.executable.display());
            (format!("{} has no Triton", python.executable.display()), format!("{install}; torch is not needed"))
        }
        Some(python) => match ask(&python.executable, settings.cores) {
            Ok((triton, milliseconds)) => {
                facts.triton = Some(triton);
                facts.milliseconds = Some(milliseconds);
                return facts;
            }
            Err(problem) => (problem, format!("see `{} -c 'import triton'`", python.executable.display())),
        },
    };
    facts.problem = Some(problem);
    facts.remedy = Some(remedy);
    facts
}

fn ask(python: &Path, cores: usize) -> Result<(String, (u128, u128)), String> {
    let mut session = CompilerSession::new(python.to_owned()).with_cores(cores).with_patience(PATIENCE);
    let mut time = || -> Result<u128, String> {
        let start = Instant::now();
        let answer = session.answer(request()).map_err(|why| why.lines().next().unwrap_or_default().to_owned())?;
        if answer.accepted {
            return Ok(start.elapsed().as_millis());
        }
        let refused = answer.error.map(|error| error.message);
        let why = answer.not_lowerable.or(answer.crashed).or(refused).unwrap_or_default();
        Err(format!("it does not compile a small kernel: {}", why.lines().next().unwrap_or_default()))
    };
    let times = (time()?, time()?);
    match session.status() {
        ServiceStatus::Ready { triton } => Ok((triton.clone(), times)),
        other => Err(format!("it answers and is {other:?}")),
    }
}

fn request() -> LoweringRequest {
    LoweringRequest {
        id: 0,
        files: vec![SourceFile { name: "kernel".to_owned(), text: KERNEL.to_owned(), ..SourceFile::default() }],
        kernel: "k".to_owned(),
        signature: BTreeMap::from([("x".to_owned(), "*fp32".to_owned())]),
        constexprs: BTreeMap::from([("B".to_owned(), json!(64))]),
        aligned: Vec::new(),
        target: ("cuda".to_owned(), json!(90), 32),
        options: BTreeMap::new(),
        types: false,
        full: None,
        seconds: PATIENCE.as_secs_f64(),
        in_series: false,
    }
}
