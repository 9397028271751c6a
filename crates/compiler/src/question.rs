//! What is asked about a kernel, until there is a verdict.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use model::analysis::occupancy::{Limits, shared_of_amd};
use model::kernel::{Kernel, Module};
use model::syntax::Source;

use super::extract::{Extracted, extract};
use super::protocol::{Answer, Full, Request, SourceFile};
use super::signatures::{Certainty, Guess, guesses};

/// How long one lowering may take: a kernel takes milliseconds, a large one with much unrolled a second.
const SECONDS: f64 = 20.0;
/// How long it may take when the user's file is imported first, and torch with it.
const SECONDS_WITH_IMPORT: f64 = 90.0;
/// So many written or recorded signatures are tried.
const CERTAIN: usize = 4;

/// What is compiled for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// `cuda` or `hip`.
    pub backend: String,
    /// The compute capability, `90`, or the architecture, `gfx942`.
    pub arch: String,
    /// Lanes of a warp.
    pub warp: u32,
}

impl Default for Device {
    fn default() -> Self {
        Self { backend: "cuda".to_owned(), arch: "90".to_owned(), warp: 32 }
    }
}

impl Device {
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

impl Device {
    /// The device of a compute capability.
    #[must_use]
    pub fn of_capability((major, minor): (i32, i32)) -> Option<Self> {
        Self::parse(&format!("cuda:{major}{minor}"))
    }

    /// What Triton and the tools of the device call it: `sm_90`, `gfx942`.
    #[must_use]
    pub fn architecture(&self) -> String {
        if self.backend == "cuda" { format!("sm_{}", self.arch) } else { self.arch.clone() }
    }
}

impl std::str::FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let likely = ["cuda:sm_", "cuda:sm", "sm_", "sm", "cuda:", ""].iter().find_map(|prefix| {
            let arch = lower.strip_prefix(prefix)?.replace('.', "");
            Self::parse(&format!("cuda:{arch}")).or_else(|| Self::parse(&format!("hip:{arch}")))
        });
        Self::parse(text).ok_or_else(|| match likely {
            Some(device) => format!("`{text}` is no device; did you mean `{device}`?"),
            None => format!(
                "`{text}` is no device: `cuda:90` is compute capability 9.0, `hip:gfx942` an architecture of AMD"
            ),
        })
    }
}

impl Device {
    /// What its multiprocessors have, where that is known.
    #[must_use]
    pub fn limits(&self) -> Option<&'static Limits> {
        Limits::of(self.arch.parse().ok().filter(|_| self.backend == "cuda")?)
    }

    /// A whole compile for it, with the texts of these stages.
    #[must_use]
    pub fn full(&self, stages: Vec<String>) -> Full {
        let shared = match self.backend.as_str() {
            "hip" => shared_of_amd(&self.arch),
            _ => self.limits().map(|limits| limits.shared_of_block),
        };
        Full { stages, shared }
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.backend, self.arch)
    }
}

/// A kernel with all that is sent of it.
#[derive(Clone, Debug)]
pub struct Question {
    /// Its name.
    pub kernel: String,
    /// Its files, its own first.
    pub extracted: Vec<Extracted>,
    /// What to lower it with, best first.
    pub guesses: Vec<Guess>,
    /// What it is compiled for.
    pub device: Device,
    /// A number that is another when something else would be asked.
    pub key: u64,
    /// The file to import, in place of what was cut out of it.
    file: Option<PathBuf>,
    /// What to ask when nobody can tell.
    otherwise: Option<Box<Question>>,
}

impl Question {
    /// The question about a kernel.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub fn of(source: &Source, module: &Module, kernel: &Kernel, device: &Device) -> Result<Self, String> {
        let guesses = all_guesses(module, kernel, source)?;
        let extracted =
            extract(source, module, kernel).map_err(|missing| format!("it needs {}", missing.join(", ")))?;
        Ok(Self::with(kernel, extracted, guesses, device, None))
    }

    /// The same question, of the file at `path` itself, when what can be cut out of it does not answer it. The file is
    /// then imported, with all that it does: only where the user allows it.
    ///
    /// # Errors
    /// Why it cannot be asked.
    pub fn or_of_file(
        asked: Result<Self, String>,
        (source, module, kernel): (&Source, &Module, &Kernel),
        device: &Device,
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
        device: &Device,
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

    /// What is sent for a guess.
    #[must_use]
    pub fn request(&self, id: u64, guess: &Guess) -> Request {
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
        Request {
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

    /// Whether a file itself is asked about, in place of what was cut out of it.
    pub(super) fn is_of_file(&self) -> bool {
        self.file.is_some()
    }

    /// Whether something was assumed of the user's code that may be otherwise: then only a yes counts.
    fn assumes(&self) -> bool {
        self.extracted.iter().any(|file| !file.assumed.is_empty())
    }
}

/// What to lower a kernel with, best first.
fn all_guesses(module: &Module, kernel: &Kernel, source: &Source) -> Result<Vec<Guess>, String> {
    let mut guesses = guesses(module, kernel, source.text());
    if guesses.is_empty() {
        return Err("its parameters cannot be guessed".to_owned());
    }
    if guesses[0].certainty != Certainty::Guessed {
        guesses.truncate(CERTAIN);
    }
    Ok(guesses)
}

/// What came of a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// Triton takes the kernel; with its answer, and whether that was for parameters that somebody wrote or recorded.
    Accepted(Box<Answer>, bool),
    /// It does not, whatever the parameters, or for those that somebody wrote or recorded.
    Refused(Box<Answer>),
    /// Nobody can tell, for this reason.
    Unknown(String),
}

/// A question on its way.
#[derive(Clone, Debug)]
pub struct Trial {
    /// What is asked.
    pub question: Question,
    next: usize,
    accepted: Option<Box<Answer>>,
    refused: Option<Box<Answer>>,
}

impl Trial {
    /// A question that was not asked yet.
    #[must_use]
    pub fn new(question: Question) -> Self {
        Self { question, next: 0, accepted: None, refused: None }
    }

    /// What is to be asked next, under this number.
    #[must_use]
    pub fn request(&self, id: u64) -> Option<Request> {
        Some(self.question.request(id, self.question.guesses.get(self.next)?))
    }

    /// What was asked last.
    #[must_use]
    pub fn guess(&self) -> Option<&Guess> {
        self.question.guesses.get(self.next.checked_sub(1)?)
    }

    /// Takes in the answer to [`Self::request`]. Returns what came of it, unless more must be asked.
    pub fn hear(&mut self, answer: Answer) -> Option<Settled> {
        let settled = self.heard(answer);
        if let Some(Settled::Unknown(_)) = settled
            && let Some(otherwise) = self.question.otherwise.take()
        {
            *self = Self::new(*otherwise);
            return None;
        }
        settled
    }

    fn heard(&mut self, answer: Answer) -> Option<Settled> {
        let Some(guess) = self.question.guesses.get(self.next) else {
            return Some(Settled::Unknown("there is nothing to ask".to_owned()));
        };
        let is_certain = guess.certainty != Certainty::Guessed;
        self.next += 1;
        let is_last = self.next == self.question.guesses.len();
        if let Some(why) = &answer.unable {
            return Some(Settled::Unknown(why.clone()));
        }
        if let Some(how) = answer.crashed.as_ref().filter(|_| !is_certain) {
            return Some(Settled::Unknown(format!("Triton's compiler crashes: {how}")));
        }
        if answer.accepted {
            self.accepted.get_or_insert(Box::new(answer));
            // All that somebody wrote must do; of guesses one is enough.
            let accepted = self.accepted.clone().filter(|_| is_last || !is_certain)?;
            return Some(Settled::Accepted(accepted, is_certain));
        }
        if is_certain {
            return Some(if self.question.assumes() {
                Settled::Unknown("it depends on what was assumed".to_owned())
            } else {
                Settled::Refused(Box::new(answer))
            });
        }
        let first = self.refused.get_or_insert_with(|| Box::new(answer.clone()));
        if !is_same(first, &answer) || !is_certain_whatever(first) || self.question.assumes() {
            self.refused = Some(Box::new(Answer::default()));
        }
        if !is_last {
            return None;
        }
        let refused = self.refused.take().filter(|answer| answer.error.is_some());
        Some(refused.map_or_else(|| Settled::Unknown("no guess of its parameters fits".to_owned()), Settled::Refused))
    }
}

/// Whether two refusals say the same of the same place.
fn is_same(one: &Answer, other: &Answer) -> bool {
    let of = |answer: &Answer| answer.error.as_ref().map(|error| (error.message.clone(), error.places.last().copied()));
    of(one).is_some() && of(one) == of(other)
}

/// Whether a refusal does not depend on the types and values of parameters: names, keywords, syntax.
pub(super) fn is_certain_whatever(answer: &Answer) -> bool {
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
    use crate::protocol::Refusal;

    fn trial(certainties: &[Certainty]) -> Trial {
        let guess = |certainty: &Certainty| Guess {
            signature: BTreeMap::new(),
            constexprs: BTreeMap::new(),
            aligned: Vec::new(),
            certainty: *certainty,
        };
        let guesses = certainties.iter().map(guess).collect();
        let device = Device::default();
        let (kernel, extracted) = ("k".to_owned(), Vec::new());
        Trial::new(Question { kernel, extracted, guesses, device, key: 0, file: None, otherwise: None })
    }

    fn yes() -> Answer {
        Answer { accepted: true, ..Answer::default() }
    }

    fn no(message: &str) -> Answer {
        let error = Refusal {
            kind: String::new(),
            message: message.to_owned(),
            places: vec![(0, 3, 4, 3, 8)],
            verifier: Vec::new(),
        };
        Answer { error: Some(error), ..Answer::default() }
    }

    fn settled(certainties: &[Certainty], answers: &[Answer]) -> Option<Settled> {
        let mut trial = trial(certainties);
        answers.iter().map(|answer| trial.hear(answer.clone())).last().flatten()
    }

    use Certainty::{Guessed, Recorded, Written};

    #[test]
    fn devices_have_names() {
        for (name, warp) in [
            ("cuda:90", 32),
            ("cuda:120", 32),
            ("hip:gfx90a", 64),
            ("hip:gfx942", 64),
            ("hip:gfx1030", 32),
            ("hip:gfx1201", 32),
        ] {
            let device = Device::parse(name).expect(name);
            assert_eq!((device.warp, device.to_string()), (warp, name.to_owned()));
        }
        for (name, likely) in
            [("sm_90", "cuda:90"), ("cuda:9.0", "cuda:90"), ("GFX942", "hip:gfx942"), ("8.9", "cuda:89")]
        {
            let message = name.parse::<Device>().unwrap_err();
            assert_eq!(message, format!("`{name}` is no device; did you mean `{likely}`?"));
        }
        assert!("H100".parse::<Device>().unwrap_err().contains("`cuda:90` is compute capability 9.0"));
        let architecture = |device: Option<Device>| device.map(|device| device.architecture());
        assert_eq!(architecture(Device::of_capability((9, 0))).as_deref(), Some("sm_90"));
        assert_eq!(architecture(Device::of_capability((12, 0))).as_deref(), Some("sm_120"));
        assert_eq!(architecture(Device::parse("hip:gfx942")).as_deref(), Some("gfx942"));
        assert_eq!(Device::of_capability((0, 0)), None);
        for name in
            ["", "cuda", "cuda:", "cuda:9", "cuda:sm_90", "cuda:9.0", "cuda:9000", "hip:942", "hip:gfx", "rocm:gfx942"]
        {
            assert_eq!(Device::parse(name), None, "{name}");
        }
    }

    #[test]
    fn all_that_was_written_must_do() {
        assert_eq!(settled(&[Written, Written], &[yes()]), None);
        assert_eq!(settled(&[Written, Written], &[yes(), yes()]), Some(Settled::Accepted(Box::new(yes()), true)));
        assert_eq!(settled(&[Recorded, Recorded], &[yes(), no("odd")]), Some(Settled::Refused(Box::new(no("odd")))));
    }

    #[test]
    fn the_file_itself_is_asked_last() {
        let mut asked = trial(&[Written]);
        asked.question.otherwise = Some(Box::new(trial(&[Written]).question));
        asked.question.otherwise.as_mut().unwrap().file = Some("/a.py".into());
        let unable = Answer { unable: Some("no".to_owned()), ..Answer::default() };
        assert_eq!(asked.hear(unable.clone()), None);
        assert!(asked.question.file.is_some() && asked.request(1).is_some());
        assert_eq!(asked.hear(unable), Some(Settled::Unknown("no".to_owned())));
    }

    #[test]
    fn one_guess_is_enough_and_no_guess_is_no_proof() {
        let defined = "oops is not defined";
        assert_eq!(settled(&[Guessed, Guessed], &[no("odd"), yes()]), Some(Settled::Accepted(Box::new(yes()), false)));
        assert!(matches!(settled(&[Guessed, Guessed], &[no("odd"), no("odd")]), Some(Settled::Unknown(_))));
        assert_eq!(
            settled(&[Guessed, Guessed], &[no(defined), no(defined)]),
            Some(Settled::Refused(Box::new(no(defined))))
        );
        assert!(matches!(settled(&[Guessed; 3], &[no(defined), no("odd"), no(defined)]), Some(Settled::Unknown(_))));
    }
}
