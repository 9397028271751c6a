//! Complete compilations of a kernel, whose intermediate representations and assembly are shown to the user.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value as Json;

use model::analysis::verdict::FrontEndOutcome;
use model::api::Version;
use model::kernel::{Kernel, Module};
use model::syntax::Source;

use super::extract::Extracted;
use super::listing::{CompilerStage, Sources, annotated};
use super::protocol::{Compiled, LoweringReply, LoweringRequest};
use super::question::{CompileQuestion, CompileTarget, QuestionResult, is_certain_whatever};
use super::signatures::{Constant, Guess, GuessOrigin, Variant, certain_variants, guessed_variants, usual_stages};
use super::verdict::said;

/// The time limit of a complete compilation in seconds; large kernels take some seconds.
const SECONDS: f64 = 120.0;

/// A request for the text of a compilation stage.
#[derive(Clone, Debug)]
pub struct Inspection {
    source: Source,
    module: Module,
    question: CompileQuestion,
    stage: CompilerStage,
    sources: Vec<(String, Arc<str>)>,
    /// The parameters and options to compile it with, best first.
    ways: Vec<CompileOptions>,
    next: usize,
    /// Why the first of them failed.
    refused: Option<InspectionError>,
}

/// Parameters, and options of the back end that differ from its defaults.
type CompileOptions = (Guess, BTreeMap<String, i64>);

/// Which compilation of a kernel to show.
#[derive(Clone, Debug)]
pub struct StageSelection {
    /// The stage to show.
    pub stage: CompilerStage,
    /// The number of the variant in which the program runs the kernel, from 1.
    pub config: Option<usize>,
    /// The device to compile for.
    pub device: CompileTarget,
    /// The version of Triton.
    pub triton: Version,
}

/// The text of a compilation stage, with what is needed to annotate it.
#[derive(Clone, Debug)]
pub struct Listing {
    /// A few lines about how it was compiled and its resources.
    pub notes: Vec<String>,
    /// The text as Triton prints it.
    pub raw: String,
    stage: CompilerStage,
    sources: Vec<(String, Arc<str>)>,
}

/// The reason why there is no text, as text for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InspectionError(pub String);

impl Inspection {
    /// The request for `kernel` in the file `path`.
    ///
    /// # Errors
    /// Returns an [`InspectionError`] when the kernel cannot be compiled by itself.
    pub fn new(
        source: &Source,
        module: &Module,
        kernel: &Kernel,
        path: &Path,
        wanted: &StageSelection,
    ) -> Result<Self, InspectionError> {
        let name = &kernel.name;
        let StageSelection { stage, device, .. } = wanted;
        if !stage.is_of(device) {
            let all = CompilerStage::ALL.into_iter().filter(|stage| stage.is_of(device)).map(CompilerStage::name);
            let all: Vec<_> = all.collect();
            return Err(InspectionError(format!("there is no {} for {device}, only {}", stage.name(), all.join(", "))));
        }
        let unasked = |why| InspectionError(format!("`{name}` cannot be compiled without the rest of its file: {why}"));
        let mut question = CompileQuestion::of(source, module, kernel, device).map_err(unasked)?;
        // Triton reports lines of the files that it gets, so these must be the original ones.
        question.extracted = question.extracted.iter().map(Extracted::in_place).collect();
        let ways = ways(source, module, kernel, &question.guesses, wanted)?;
        let linked = |file: &Extracted| match file.file {
            None => Some((path.display().to_string(), Arc::clone(source.text()))),
            Some(at) => {
                module.links().files().get(at).map(|file| (file.path.display().to_string(), Arc::clone(&file.text)))
            }
        };
        let sources = question.extracted.iter().filter_map(linked).collect();
        let (source, module) = (source.clone(), module.clone());
        Ok(Self { source, module, question, stage: *stage, sources, ways, next: 0, refused: None })
    }

    /// The next request to send, with this id; `None` if there is none left.
    #[must_use]
    pub fn request(&self, id: u64) -> Option<LoweringRequest> {
        let (guess, options) = self.ways.get(self.next)?;
        let mut request = self.question.request(id, guess);
        for (file, (path, _)) in request.files.iter_mut().zip(&self.sources) {
            file.path = Some(path.clone());
        }
        request.options = options.iter().map(|(name, value)| (name.clone(), Json::from(*value))).collect();
        request.types = false;
        request.full = Some(self.question.device.full(vec![self.stage.name().to_owned()]));
        request.seconds = SECONDS;
        Some(request)
    }

    /// Handles the answer to [`Self::request`] from this version of Triton. Returns the result unless another request
    /// is needed.
    ///
    /// # Errors
    /// Returns an [`InspectionError`] when the kernel does not reach the stage.
    pub fn handle_reply(&mut self, answer: LoweringReply, triton: &str) -> Option<Result<Listing, InspectionError>> {
        let (guess, options) = self.ways.get(self.next)?.clone();
        self.next += 1;
        if answer.accepted {
            return Some(self.listing(
                answer.compiled.map(|compiled| *compiled).unwrap_or_default(),
                &guess,
                &options,
                triton,
            ));
        }
        let may_help = guess.certainty == GuessOrigin::Guessed && !is_certain_whatever(&answer);
        let failure = self.failure(answer);
        let first = self.refused.get_or_insert(failure).clone();
        if may_help && self.next < self.ways.len() {
            return None;
        }
        let advice = "what its parameters are is only guessed; a comment `# warpsmith: signature` can say it";
        Some(Err(if may_help { InspectionError(format!("{first}\n{advice}")) } else { first }))
    }

    fn listing(
        &self,
        mut compiled: Compiled,
        guess: &Guess,
        options: &BTreeMap<String, i64>,
        triton: &str,
    ) -> Result<Listing, InspectionError> {
        let name = &self.question.kernel;
        let failed = compiled.failed.as_ref().map(|failed| match failed.stage.as_str() {
            "launch" => format!("it compiles, but cannot be launched there: {}", failed.message),
            stage => format!("Triton fails in the stage {stage}: {}", failed.message),
        });
        let Some(raw) = compiled.stages.remove(self.stage.name()) else {
            let why = failed.unwrap_or_else(|| "Triton writes no such text".to_owned());
            return Err(InspectionError(format!("there is no {} of `{name}`: {why}", self.stage.name())));
        };
        let mut notes =
            vec![format!("{} of `{name}`, by Triton {triton} for {}", self.stage.name(), self.question.device)];
        notes.push(format!("{} {}", certainty(guess), self.signature(guess)));
        let mut takes = options.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>();
        let has_said = options.get("num_warps") == Some(&compiled.warps.into());
        takes.extend(resources(&compiled).into_iter().skip(usize::from(has_said)));
        notes.push(takes.join(", "));
        notes.extend(failed);
        Ok(Listing { notes, raw, stage: self.stage, sources: self.sources.clone() })
    }

    /// The parameters in the syntax of a signature comment, with `:16` for multiples of 16.
    fn signature(&self, guess: &Guess) -> String {
        let kernel = self.module.kernel(&self.question.kernel);
        let given = kernel.iter().flat_map(|kernel| &kernel.params).filter_map(|param| {
            let name = &param.name;
            if let Some(value) = guess.constexprs.get(name) {
                return Some(format!("{name}={}", text(value)));
            }
            let aligned = if guess.aligned.contains(name) { ":16" } else { "" };
            Some(format!("{name}={}{aligned}", guess.signature.get(name)?))
        });
        given.collect::<Vec<_>>().join(" ")
    }

    /// The message of a rejection, with its place.
    fn failure(&self, answer: LoweringReply) -> InspectionError {
        let name = &self.question.kernel;
        if let Some(how) = answer.crashed {
            return InspectionError(format!("Triton's compiler crashes on `{name}`: {how}"));
        }
        if let Some(why) = answer.not_lowerable {
            return InspectionError(format!("`{name}` cannot be compiled: {why}"));
        }
        let settled = QuestionResult::Refused(Box::new(answer));
        let Some(kernel) = self.module.kernel(name) else {
            return InspectionError(format!("`{name}` does not compile"));
        };
        InspectionError(match said(&self.source, &self.module, kernel, &self.question, settled) {
            FrontEndOutcome::Refused { span, message, .. } => {
                let line = self.source.text()[..span.start].matches('\n').count() + 1;
                let path = self.sources.first().map(|(path, _)| Path::new(path));
                let file = path.and_then(Path::file_name).unwrap_or_default().display();
                format!("`{name}` does not compile: {file}:{line}: {message}")
            }
            FrontEndOutcome::Unknown(why) => format!("`{name}` does not compile: {why}"),
            FrontEndOutcome::Accepted { .. } => format!("`{name}` does not compile"),
        })
    }
}

impl Listing {
    /// The text, annotated with the source lines of its parts.
    #[must_use]
    pub fn annotated(&self) -> String {
        let sources: &Sources = &self.sources;
        annotated(self.stage, &self.raw, sources)
    }

    /// The notes as comments, followed by the annotated text.
    #[must_use]
    pub fn whole(&self) -> String {
        let mut whole = String::new();
        for line in self.notes.iter().flat_map(|note| note.lines()) {
            let _ = writeln!(whole, "{} {line}", self.stage.comment());
        }
        whole + "\n" + &self.annotated()
    }
}

/// The parameters and options to compile a kernel with, one for each possible signature.
fn ways(
    source: &Source,
    module: &Module,
    kernel: &Kernel,
    guesses: &[Guess],
    wanted: &StageSelection,
) -> Result<Vec<CompileOptions>, InspectionError> {
    let stages = usual_stages(wanted.triton);
    let way = |variant: Variant| (variant.guess, variant.options);
    let certain = certain_variants(module, kernel, source.text(), stages);
    let all: Vec<Vec<CompileOptions>> = if certain.all.is_empty() {
        let of_guess = |guess: &Guess| {
            let all: Vec<_> = guessed_variants(module, kernel, guess, stages).all.into_iter().map(way).collect();
            if all.is_empty() { vec![(guess.clone(), BTreeMap::new())] } else { all }
        };
        guesses.iter().map(of_guess).collect()
    } else {
        vec![certain.all.into_iter().map(way).collect()]
    };
    let at = wanted.config.map_or(Some(0), |number| number.checked_sub(1));
    let picked: Vec<CompileOptions> = all.iter().filter_map(|all| all.get(at?).cloned()).collect();
    if picked.is_empty() {
        let most = all.iter().map(Vec::len).max().unwrap_or_default();
        let ways = if most == 1 { "is 1 way".to_owned() } else { format!("are {most} ways") };
        return Err(InspectionError(format!("there {ways} to run `{}`, counted from 1", kernel.name)));
    }
    Ok(picked)
}

fn certainty(guess: &Guess) -> &'static str {
    match guess.certainty {
        GuessOrigin::Written => "as the signature says:",
        GuessOrigin::Recorded => "as it was recorded:",
        GuessOrigin::Guessed => "guessed:",
    }
}

fn text(value: &Constant) -> String {
    match value {
        Constant::None => "None".to_owned(),
        Constant::Bool(true) => "True".to_owned(),
        Constant::Bool(false) => "False".to_owned(),
        Constant::Int(value) => value.to_string(),
        Constant::Float(value) => format!("{value:?}"),
        Constant::Str(value) => format!("{value:?}"),
        Constant::Dtype(name) => format!("tl.{name}"),
        Constant::Tuple(items) => format!("({})", items.iter().map(text).collect::<Vec<_>>().join(",")),
        Constant::Dict(items) => {
            let items: Vec<_> = items.iter().map(|(name, value)| format!("{name:?}:{}", text(value))).collect();
            format!("{{{}}}", items.join(","))
        }
    }
}

fn resources(compiled: &Compiled) -> Vec<String> {
    let of_thread = |value: Option<u32>, what: &str| value.map(|value| format!("{value} {what}"));
    [
        Some(format!("{} warps", compiled.warps)).filter(|_| compiled.warps > 0),
        of_thread(compiled.registers, "registers a thread"),
        of_thread(compiled.spills.filter(|spills| *spills > 0), "bytes of them spilled"),
        compiled.registers.map(|_| format!("{} bytes of shared memory", compiled.shared)),
    ]
    .into_iter()
    .flatten()
    .collect()
}
