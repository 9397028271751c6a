//! Questions to the compiler about a kernel: the sequence of requests until the kernel is accepted or rejected.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use model::analysis::occupancy::{MultiprocessorLimits, shared_of_amd};
use model::kernel::{Kernel, Module};
use model::syntax::Source;

use super::extract::{Extracted, extract};
use super::protocol::{FullCompilation, LoweringReply, LoweringRequest, SourceFile};
use super::signatures::{Guess, GuessOrigin, guesses};

/// The time limit of one lowering in seconds; a kernel takes milliseconds, a large one with much unrolling a second.
const SECONDS: f64 = 20.0;
/// The time limit in seconds if the user's file is imported first, and torch with it.
const SECONDS_WITH_IMPORT: f64 = 90.0;
/// The greatest number of written or recorded signatures that are tried.
const CERTAIN: usize = 4;

/// The device to compile for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileTarget {
    /// `cuda` or `hip`.
    pub backend: String,
    /// The compute capability, `90`, or the architecture, `gfx942`.
    pub arch: String,
    /// Lanes per warp.
    pub warp: u32,
}

impl Default for CompileTarget {
    fn default() -> Self {
        Self { backend: "cuda".to_owned(), arch: "90".to_owned(), warp: 32 }
    }
}

impl CompileTarget {
    /// The device of a name such as `cuda:90` or `hip:gfx942`.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (backend, arch) = name.split_once(':')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let warp = match backend {
            "cuda" if is_number(arch) && !arch.starts_with('0') && (2..=3).contains(&arch.len()) => 32,
            "hip" => {
                let (generation, stepping) = arch.strip_prefix("gfx")?.split_at_checked(arch.len().checked_sub(5)?)?;
                let is_stepping = stepping.bytes().all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase());
                match generation.parse::<u32>().ok().filter(|_| is_number(generation) && is_stepping)? {
                    9 => 64,
                    10.. => 32,
                    _ => return None,
                }
            }
            _ => return None,
        };
        Some(Self { backend: backend.to_owned(), arch: arch.to_owned(), warp })
    }
}

impl CompileTarget {
    /// The device of a compute capability.
    #[must_use]
    pub fn of_capability((major, minor): (i32, i32)) -> Option<Self> {
        Self::parse(&format!("cuda:{major}{minor}"))
    }

    /// The architecture's name in Triton and in the device's tools: `sm_90`, `gfx942`.
    #[must_use]
    pub fn architecture(&self) -> String {
        if self.backend == "cuda" { format!("sm_{}", self.arch) } else { self.arch.clone() }
    }
}

impl std::str::FromStr for CompileTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let likely = ["cuda:sm_", "cuda:sm", "sm_", "sm", "cuda:", ""].iter().find_map(|prefix| {
            let arch = lower.strip_prefix(prefix)?.replace('.', "");
            Self::parse(&format!("cuda:{arch}")).or_else(|| Self::parse(&format!("hip:{arch}")))
        });
        Self::parse(text).ok_or_else(|| match likely {
            Some(device) => format!("`{text}` is not a device; did you mean `{device}`?"),
            None => format!(
                "`{text}` is not a device: write `cuda:90` for compute capability 9.0, or `hip:gfx942` for an AMD architecture"
            ),
        })
    }
}

impl CompileTarget {
    /// The resource limits of its multiprocessors, if known.
    #[must_use]
    pub fn limits(&self) -> Option<&'static MultiprocessorLimits> {
        MultiprocessorLimits::of(self.arch.parse().ok().filter(|_| self.backend == "cuda")?)
    }

    /// A complete compilation for this device, with the texts of these stages.
    #[must_use]
    pub fn full(&self, stages: Vec<String>) -> FullCompilation {
        let shared = match self.backend.as_str() {
            "hip" => shared_of_amd(&self.arch),
            _ => self.limits().map(|limits| limits.shared_of_block),
        };
        FullCompilation { stages, shared }
    }
}

impl std::fmt::Display for CompileTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.backend, self.arch)
    }
}

/// A question about a kernel, with everything that is sent.
#[derive(Clone, Debug)]
pub struct CompileQuestion {
    /// The name of the kernel.
    pub kernel: String,
    /// The slices of the files that it needs, its own first.
    pub extracted: Vec<Extracted>,
    /// The signatures to lower it with, best first.
    pub guesses: Vec<Guess>,
    /// The device to compile for.
    pub device: CompileTarget,
    /// A hash of the question, by which changes are noticed.
    pub key: u64,
    /// The file to import instead of its slice.
    file: Option<PathBuf>,
    /// The question to ask next if this one has no answer.
    otherwise: Option<Box<CompileQuestion>>,
}

impl CompileQuestion {
    /// Creates the question about a kernel.
    ///
    /// # Errors
    /// Returns the reason when the question cannot be asked.
    pub fn of(source: &Source, module: &Module, kernel: &Kernel, device: &CompileTarget) -> Result<Self, String> {
        let guesses = all_guesses(module, kernel, source)?;
        let extracted =
            extract(source, module, kernel).map_err(|missing| format!("it needs {}", missing.join(", ")))?;
        Ok(Self::with(kernel, extracted, guesses, device, None))
    }

    /// Adds the same question about the file at `path` itself, in case its slice does not answer it. The file is then
    /// imported and its code runs, so the user must have allowed that.
    ///
    /// # Errors
    /// Returns the reason when the question cannot be asked.
    pub fn or_of_file(
        asked: Result<Self, String>,
        (source, module, kernel): (&Source, &Module, &Kernel),
        device: &CompileTarget,
        path: &Path,
    ) -> Result<Self, String> {
        let guesses = match &asked {
            Ok(question) => question.guesses.clone(),
            Err(_) => all_guesses(module, kernel, source)?,
        };
        let file = Self::with(kernel, vec![Extracted::whole(source)], guesses, device, Some(path.to_owned()));
        let Ok(mut question) = asked else { return Ok(file) };
        let key = file.key;
        question.otherwise = Some(Box::new(file));
        question.key = key;
        Ok(question)
    }

    fn with(
        kernel: &Kernel,
        extracted: Vec<Extracted>,
        guesses: Vec<Guess>,
        device: &CompileTarget,
        file: Option<PathBuf>,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        for file in &extracted {
            (&file.text, &file.imports, &file.assumed).hash(&mut hasher);
        }
        (&kernel.name, serde_json::to_string(&guesses).unwrap_or_default(), device, &file).hash(&mut hasher);
        let key = hasher.finish();
        Self { kernel: kernel.name.clone(), extracted, guesses, device: device.clone(), key, file, otherwise: None }
    }

    /// The request for a guess.
    #[must_use]
    pub fn request(&self, id: u64, guess: &Guess) -> LoweringRequest {
        let file = |(at, file): (usize, &Extracted)| SourceFile {
            name: format!("file{at}"),
            text: file.text.clone(),
            imports: file.imports.clone(),
            assumed: file.assumed.clone(),
            path: self.file.as_ref().map(|path| path.to_string_lossy().into_owned()),
            is_imported: self.file.is_some(),
        };
        let json = |(name, value): (&String, _)| (name.clone(), serde_json::to_value(value).unwrap_or_default());
        let arch = self.device.arch.parse::<u32>().map_or_else(|_| self.device.arch.clone().into(), Into::into);
        LoweringRequest {
            id,
            files: self.extracted.iter().enumerate().map(file).collect(),
            kernel: self.kernel.clone(),
            signature: guess.signature.clone(),
            constexprs: guess.constexprs.iter().map(json).collect(),
            aligned: guess.aligned.clone(),
            target: (self.device.backend.clone(), arch, self.device.warp),
            options: BTreeMap::new(),
            types: true,
            full: None,
            seconds: if self.file.is_some() { SECONDS_WITH_IMPORT } else { SECONDS },
            in_series: false,
        }
    }

    /// Whether the question imports the file itself instead of its slice.
    pub(super) fn is_of_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether the slices contain assumptions about the user's code; only an acceptance is then valid.
    fn assumes(&self) -> bool {
        self.extracted.iter().any(|file| !file.assumed.is_empty())
    }
}

/// The signatures to lower a kernel with, best first.
fn all_guesses(module: &Module, kernel: &Kernel, source: &Source) -> Result<Vec<Guess>, String> {
    let mut guesses = guesses(module, kernel, source.text());
    if guesses.is_empty() {
        return Err("its parameters cannot be guessed".to_owned());
    }
    if guesses[0].certainty != GuessOrigin::Guessed {
        guesses.truncate(CERTAIN);
    }
    Ok(guesses)
}

/// The result of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum QuestionResult {
    /// Triton accepts the kernel: its answer, and whether the parameters were written or recorded.
    Accepted(Box<LoweringReply>, bool),
    /// Triton rejects the kernel, either whatever the parameters are, or for written or recorded ones.
    Refused(Box<LoweringReply>),
    /// There is no result, for this reason.
    Unknown(String),
}

/// A question in progress.
#[derive(Clone, Debug)]
pub struct PendingQuestion {
    /// The question.
    pub question: CompileQuestion,
    next: usize,
    accepted: Option<Box<LoweringReply>>,
    refused: Option<Box<LoweringReply>>,
}

impl PendingQuestion {
    /// Starts a question.
    #[must_use]
    pub fn new(question: CompileQuestion) -> Self {
        Self { question, next: 0, accepted: None, refused: None }
    }

    /// The next request to send, with this id; `None` if there is none left.
    #[must_use]
    pub fn request(&self, id: u64) -> Option<LoweringRequest> {
        Some(self.question.request(id, self.question.guesses.get(self.next)?))
    }

    /// The guess of the last request that was answered.
    #[must_use]
    pub fn guess(&self) -> Option<&Guess> {
        self.question.guesses.get(self.next.checked_sub(1)?)
    }

    /// Handles the answer to [`Self::request`]. Returns the result unless another request is needed.
    pub fn handle_reply(&mut self, answer: LoweringReply) -> Option<QuestionResult> {
        let settled = self.heard(answer);
        if let Some(QuestionResult::Unknown(_)) = settled
            && let Some(otherwise) = self.question.otherwise.take()
        {
            *self = Self::new(*otherwise);
            return None;
        }
        settled
    }

    fn heard(&mut self, answer: LoweringReply) -> Option<QuestionResult> {
        let Some(guess) = self.question.guesses.get(self.next) else {
            return Some(QuestionResult::Unknown("there is nothing to compile".to_owned()));
        };
        let is_certain = guess.certainty != GuessOrigin::Guessed;
        self.next += 1;
        let is_last = self.next == self.question.guesses.len();
        if let Some(why) = &answer.not_lowerable {
            return Some(QuestionResult::Unknown(why.clone()));
        }
        if let Some(how) = answer.crashed.as_ref().filter(|_| !is_certain) {
            return Some(QuestionResult::Unknown(format!("Triton's compiler crashes: {how}")));
        }
        if answer.accepted {
            self.accepted.get_or_insert(Box::new(answer));
            // All written signatures must be accepted; of guesses, one is enough.
            let accepted = self.accepted.clone().filter(|_| is_last || !is_certain)?;
            return Some(QuestionResult::Accepted(accepted, is_certain));
        }
        if is_certain {
            return Some(if self.question.assumes() {
                QuestionResult::Unknown("it depends on what was assumed".to_owned())
            } else {
                QuestionResult::Refused(Box::new(answer))
            });
        }
        let first = self.refused.get_or_insert_with(|| Box::new(answer.clone()));
        if !is_same(first, &answer) || !is_certain_whatever(first) || self.question.assumes() {
            self.refused = Some(Box::new(LoweringReply::default()));
        }
        if !is_last {
            return None;
        }
        let refused = self.refused.take().filter(|answer| answer.error.is_some());
        Some(refused.map_or_else(
            || QuestionResult::Unknown("no guess of its parameters fits".to_owned()),
            QuestionResult::Refused,
        ))
    }
}

/// Whether two rejections have the same message and place.
fn is_same(one: &LoweringReply, other: &LoweringReply) -> bool {
    let of = |answer: &LoweringReply| {
        answer.error.as_ref().map(|error| (error.message.clone(), error.places.last().copied()))
    };
    of(one).is_some() && of(one) == of(other)
}

/// Whether a rejection does not depend on the types and values of parameters, such as one about names, keywords or
/// syntax.
pub(super) fn is_certain_whatever(answer: &LoweringReply) -> bool {
    let Some(error) = &answer.error else { return false };
    let message = error.message.as_str();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    error.kind == "load"
        || says(&["is not defined", "module 'triton.language", "unsupported AST node", "have been removed"])
        || says(&["unexpected keyword argument", "required positional argument", "positional arguments but"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::FrontEndError;

    fn trial(certainties: &[GuessOrigin]) -> PendingQuestion {
        let guess = |certainty: &GuessOrigin| Guess {
            signature: BTreeMap::new(),
            constexprs: BTreeMap::new(),
            aligned: Vec::new(),
            certainty: *certainty,
        };
        let guesses = certainties.iter().map(guess).collect();
        let device = CompileTarget::default();
        let (kernel, extracted) = ("k".to_owned(), Vec::new());
        PendingQuestion::new(CompileQuestion {
            kernel,
            extracted,
            guesses,
            device,
            key: 0,
            file: None,
            otherwise: None,
        })
    }

    fn yes() -> LoweringReply {
        LoweringReply { accepted: true, ..LoweringReply::default() }
    }

    fn no(message: &str) -> LoweringReply {
        let error = FrontEndError {
            kind: String::new(),
            message: message.to_owned(),
            places: vec![(0, 3, 4, 3, 8)],
            verifier: Vec::new(),
        };
        LoweringReply { error: Some(error), ..LoweringReply::default() }
    }

    fn settled(certainties: &[GuessOrigin], answers: &[LoweringReply]) -> Option<QuestionResult> {
        let mut trial = trial(certainties);
        answers.iter().map(|answer| trial.handle_reply(answer.clone())).last().flatten()
    }

    use GuessOrigin::{Guessed, Recorded, Written};

    #[test]
    fn device_names_are_parsed_and_misspellings_are_corrected() {
        for (name, warp) in [
            ("cuda:90", 32),
            ("cuda:120", 32),
            ("hip:gfx90a", 64),
            ("hip:gfx942", 64),
            ("hip:gfx1030", 32),
            ("hip:gfx1201", 32),
        ] {
            let device = CompileTarget::parse(name).expect(name);
            assert_eq!((device.warp, device.to_string()), (warp, name.to_owned()));
        }
        for (name, likely) in
            [("sm_90", "cuda:90"), ("cuda:9.0", "cuda:90"), ("GFX942", "hip:gfx942"), ("8.9", "cuda:89")]
        {
            let message = name.parse::<CompileTarget>().unwrap_err();
            assert_eq!(message, format!("`{name}` is not a device; did you mean `{likely}`?"));
        }
        assert!("H100".parse::<CompileTarget>().unwrap_err().contains("`cuda:90` for compute capability 9.0"));
        let architecture = |device: Option<CompileTarget>| device.map(|device| device.architecture());
        assert_eq!(architecture(CompileTarget::of_capability((9, 0))).as_deref(), Some("sm_90"));
        assert_eq!(architecture(CompileTarget::of_capability((12, 0))).as_deref(), Some("sm_120"));
        assert_eq!(architecture(CompileTarget::parse("hip:gfx942")).as_deref(), Some("gfx942"));
        assert_eq!(CompileTarget::of_capability((0, 0)), None);
        for name in
            ["", "cuda", "cuda:", "cuda:9", "cuda:sm_90", "cuda:9.0", "cuda:9000", "hip:942", "hip:gfx", "rocm:gfx942"]
        {
            assert_eq!(CompileTarget::parse(name), None, "{name}");
        }
    }

    #[test]
    fn every_written_or_recorded_signature_must_be_accepted() {
        assert_eq!(settled(&[Written, Written], &[yes()]), None);
        assert_eq!(
            settled(&[Written, Written], &[yes(), yes()]),
            Some(QuestionResult::Accepted(Box::new(yes()), true))
        );
        assert_eq!(
            settled(&[Recorded, Recorded], &[yes(), no("odd")]),
            Some(QuestionResult::Refused(Box::new(no("odd"))))
        );
    }

    #[test]
    fn the_whole_file_is_tried_after_its_slice() {
        let mut asked = trial(&[Written]);
        asked.question.otherwise = Some(Box::new(trial(&[Written]).question));
        asked.question.otherwise.as_mut().unwrap().file = Some("/a.py".into());
        let unable = LoweringReply { not_lowerable: Some("no".to_owned()), ..LoweringReply::default() };
        assert_eq!(asked.handle_reply(unable.clone()), None);
        assert!(asked.question.file.is_some() && asked.request(1).is_some());
        assert_eq!(asked.handle_reply(unable), Some(QuestionResult::Unknown("no".to_owned())));
    }

    #[test]
    fn one_accepted_guess_suffices_and_rejected_guesses_prove_nothing() {
        let defined = "oops is not defined";
        assert_eq!(
            settled(&[Guessed, Guessed], &[no("odd"), yes()]),
            Some(QuestionResult::Accepted(Box::new(yes()), false))
        );
        assert!(matches!(settled(&[Guessed, Guessed], &[no("odd"), no("odd")]), Some(QuestionResult::Unknown(_))));
        assert_eq!(
            settled(&[Guessed, Guessed], &[no(defined), no(defined)]),
            Some(QuestionResult::Refused(Box::new(no(defined))))
        );
        assert!(matches!(
            settled(&[Guessed; 3], &[no(defined), no("odd"), no(defined)]),
            Some(QuestionResult::Unknown(_))
        ));
    }
}
