//! Surveys: complete compilations of all variants in which the program runs a kernel, for their resource use.

use std::hash::{DefaultHasher, Hash, Hasher};

use model::analysis::resources::{CompilationResult, CompiledVariant, KernelResources, LaunchCertainty, Resources};
use model::api::Version;
use model::kernel::{Kernel, Module};
use model::syntax::Source;

use super::protocol::{BackEndFailure, Compiled, LoweringReply, LoweringRequest};
use super::question::{CompileQuestion, CompileTarget};
use super::signatures::{Guess, Variant, Variants, certain_variants, guessed_variants, usual_stages};

/// The time limit of one compilation in seconds.
const SECONDS: f64 = 60.0;

/// A survey in progress: the compilations of a kernel, one for each variant.
#[derive(Clone, Debug)]
pub struct Survey {
    question: CompileQuestion,
    stages: i64,
    /// The guesses that remain to be tried while none has been accepted.
    guesses: Vec<Guess>,
    variants: Variants,
    rows: Vec<CompiledVariant>,
    /// A hash of the survey's requests, by which changes are noticed.
    pub key: u64,
}

/// The kind of the next request.
enum Step<'a> {
    /// Whether the front end accepts a guess.
    Try(&'a Guess),
    /// A complete compilation of a variant.
    Compile(&'a Variant),
}

impl Survey {
    /// Creates the survey of a kernel for a device and a version of Triton.
    ///
    /// # Errors
    /// Returns the reason when the kernel cannot be compiled by itself.
    pub fn of(
        source: &Source,
        module: &Module,
        kernel: &Kernel,
        device: &CompileTarget,
        triton: Version,
    ) -> Result<Self, String> {
        let mut question = CompileQuestion::of(source, module, kernel, device)?;
        let stages = usual_stages(triton);
        let variants = certain_variants(module, kernel, source.text(), stages);
        let mut guesses = std::mem::take(&mut question.guesses);
        if !variants.all.is_empty() {
            guesses.clear();
        }
        guesses.reverse();
        let mut hasher = DefaultHasher::new();
        // The slices of the files do not contain the configurations.
        let tuned = guesses.last().map(|guess| guessed_variants(module, kernel, guess, stages));
        (question.key, format!("{variants:?} {tuned:?}")).hash(&mut hasher);
        let key = hasher.finish();
        Ok(Self { question, stages, guesses, variants, rows: Vec::new(), key })
    }

    /// The name of the kernel.
    #[must_use]
    pub fn kernel(&self) -> &str {
        &self.question.kernel
    }

    /// The device to compile for.
    #[must_use]
    pub fn device(&self) -> &CompileTarget {
        &self.question.device
    }

    /// Whether some variants are certain to be what the program runs; only these lead to diagnostics.
    #[must_use]
    pub fn has_proof(&self) -> bool {
        self.variants.all.iter().any(|variant| variant.certainty == LaunchCertainty::Certain)
    }

    fn step(&self) -> Option<Step<'_>> {
        match self.variants.all.get(self.rows.len()) {
            Some(variant) => Some(Step::Compile(variant)),
            None if self.rows.is_empty() => self.guesses.last().map(Step::Try),
            None => None,
        }
    }

    /// The next request to send, with this id; `None` if there is none left.
    #[must_use]
    pub fn request(&self, id: u64) -> Option<LoweringRequest> {
        let (guess, variant) = match self.step()? {
            Step::Try(guess) => (guess, None),
            Step::Compile(variant) => (&variant.guess, Some(variant)),
        };
        let options = variant.map(|variant| &variant.options).into_iter().flatten();
        Some(LoweringRequest {
            options: options.map(|(name, value)| (name.clone(), (*value).into())).collect(),
            full: variant.map(|_| self.question.device.full(Vec::new())),
            types: false,
            seconds: SECONDS,
            ..self.question.request(id, guess)
        })
    }

    /// Handles the answer to [`Self::request`]; `module` and `kernel` are those of the survey. Returns whether the
    /// survey is complete.
    pub fn handle_reply(&mut self, module: &Module, kernel: &Kernel, answer: &LoweringReply) -> bool {
        match self.step() {
            Some(Step::Try(guess)) if answer.accepted => {
                self.variants = guessed_variants(module, kernel, guess, self.stages);
                if self.variants.all.is_empty() {
                    self.guesses.clear();
                }
            }
            Some(Step::Try(_)) => _ = self.guesses.pop(),
            Some(Step::Compile(variant)) => {
                let row = CompiledVariant {
                    config: variant.config,
                    setting: variant.setting.clone(),
                    certainty: variant.certainty,
                    outcome: outcome(answer, variant, self.question.device.limits().is_some()),
                };
                self.rows.push(row);
            }
            None => {}
        }
        self.step().is_none()
    }

    /// The resources of all variants.
    #[must_use]
    pub fn resources(self) -> Resources {
        let (device, limits) = (self.question.device.architecture(), self.question.device.limits());
        Resources { device, limits, rows: self.rows, left_out: self.variants.left_out }
    }
}

fn outcome(answer: &LoweringReply, variant: &Variant, has_limits: bool) -> CompilationResult {
    if let Some(error) = &answer.error {
        let of_verifier = error.verifier.first().map(|(message, ..)| message.as_str());
        let message = of_verifier.unwrap_or(&error.message).lines().next().unwrap_or_default();
        return CompilationResult::Refused(message.to_owned());
    }
    let Some(compiled) = &answer.compiled else {
        let why =
            answer.not_lowerable.as_ref().or(answer.crashed.as_ref()).map_or("it was not compiled", String::as_str);
        return CompilationResult::Unknown(why.to_owned());
    };
    let Compiled { registers, spills, stack, shared, warps, .. } = **compiled;
    // If the limits are known, the numbers are more precise than a message about shared memory.
    let has_numbers = |stage: &str, message: &str| stage == "launch" && has_limits && message.contains("shared memory");
    match &compiled.failed {
        Some(BackEndFailure { stage, message }) if !has_numbers(stage, message) => {
            CompilationResult::Failed { stage: stage.clone(), message: message.clone() }
        }
        _ => {
            let ctas = variant.options.get("num_ctas").and_then(|ctas| u32::try_from(*ctas).ok()).unwrap_or(1);
            CompilationResult::Compiled(KernelResources { registers, spills, stack, shared, warps, ctas })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TUNED: &str = "import triton\nimport triton.language as tl\n\n@triton.autotune([triton.Config({'B': 64}), \
        triton.Config({'B': 128}, num_warps=8, num_ctas=2)], key=[])\n@triton.jit\ndef k(x, B: tl.constexpr):\n    \
        tl.store(x + tl.arange(0, B), 0)\n";

    /// Runs a survey. Returns its resources and its requests as text: `B` and the options. The argument of `respond` is
    /// whether a complete compilation is requested.
    fn surveyed(text: &str, device: &str, mut respond: impl FnMut(bool) -> LoweringReply) -> (Resources, Vec<String>) {
        let source = Source::parse(text);
        let module = Module::build(&source);
        let kernel = &module.kernels[0];
        let device = CompileTarget::parse(device).unwrap();
        let mut survey = Survey::of(&source, &module, kernel, &device, "3.6.0".parse().unwrap()).unwrap();
        let mut asked = Vec::new();
        while let Some(request) = survey.request(asked.len() as u64) {
            asked.push(format!("{} {:?} {}", request.constexprs["B"], request.options, request.full.is_some()));
            let is_done = survey.handle_reply(&module, kernel, &respond(request.full.is_some()));
            assert_eq!(is_done, survey.request(0).is_none());
        }
        (survey.resources(), asked)
    }

    fn signed(text: &str) -> String {
        text.replace("@triton.autotune", "# warpsmith: signature x=*fp16\n@triton.autotune")
    }

    fn compiled(shared: u32, failed: Option<(&str, &str)>) -> LoweringReply {
        let failed =
            failed.map(|(stage, message)| BackEndFailure { stage: stage.to_owned(), message: message.to_owned() });
        let compiled =
            Compiled { registers: Some(32), spills: Some(0), shared, warps: 4, failed, ..Compiled::default() };
        LoweringReply { accepted: true, compiled: Some(Box::new(compiled)), ..LoweringReply::default() }
    }

    #[test]
    fn each_configuration_is_compiled() {
        let (resources, asked) = surveyed(&signed(TUNED), "cuda:90", |_| compiled(1024, None));
        let first = r#"64 {"num_stages": Number(3), "num_warps": Number(4)} true"#;
        let second = r#"128 {"num_ctas": Number(2), "num_stages": Number(3), "num_warps": Number(8)} true"#;
        assert_eq!(asked, [first, second]);
        assert!(resources.rows.iter().all(|row| row.certainty == LaunchCertainty::Certain));
        let occupancies: Vec<_> = resources.rows.iter().map(|row| resources.occupancy(row).is_some()).collect();
        assert_eq!(occupancies, [true, false], "clusters are not told of");
    }

    #[test]
    fn a_survey_uses_the_first_accepted_guess() {
        let mut refused = 0;
        let (resources, asked) = surveyed(TUNED, "cuda:90", |is_all| {
            refused += 1;
            if !is_all && refused <= 2 { LoweringReply::default() } else { compiled(1024, None) }
        });
        assert_eq!(asked.len(), 5, "two are refused, one is taken, and then come the configurations: {asked:?}");
        assert!(
            resources.rows.len() == 2 && resources.rows.iter().all(|row| row.certainty == LaunchCertainty::Guessed)
        );
        let (resources, _) = surveyed(TUNED, "cuda:90", |_| LoweringReply::default());
        assert_eq!(resources.rows, []);
    }

    #[test]
    fn failed_variants_report_the_missing_resource() {
        let outcomes = |device: &str, answer: LoweringReply| {
            let (resources, _) = surveyed(&signed(TUNED), device, |_| answer.clone());
            (resources.missing_resource(&resources.rows[0]), resources.rows[0].outcome.clone())
        };
        let launch = Some(("launch", "OutOfResources: out of resource: shared memory, Required: 300000"));
        let (lack, outcome) = outcomes("cuda:90", compiled(300_000, launch));
        assert!(matches!(outcome, CompilationResult::Compiled(_)) && lack.unwrap().starts_with("needs 300,000 bytes"));
        // If the limits are unknown, only Triton's message is available.
        let (lack, outcome) = outcomes("hip:gfx942", compiled(300_000, launch));
        assert!(matches!(outcome, CompilationResult::Failed { .. }) && lack.unwrap().contains("Required: 300000"));
        let (lack, outcome) = outcomes("cuda:90", compiled(0, Some(("ttgir", "PassManager::run failed"))));
        assert!(matches!(outcome, CompilationResult::Failed { .. }) && lack.is_none());
        let crashed = LoweringReply { crashed: Some("signal 6".to_owned()), ..LoweringReply::default() };
        assert_eq!(outcomes("cuda:90", crashed), (None, CompilationResult::Unknown("signal 6".to_owned())));
    }

    #[test]
    fn the_survey_key_depends_on_configurations_but_not_on_other_code() {
        let key = |text: &str| {
            let source = Source::parse(text);
            let module = Module::build(&source);
            let device = CompileTarget::default();
            Survey::of(&source, &module, &module.kernels[0], &device, "3.6.0".parse().unwrap()).unwrap().key
        };
        for text in [TUNED.to_owned(), signed(TUNED)] {
            assert_eq!(key(&text), key(&format!("{text}\n\ndef other():\n    pass\n")));
            assert_ne!(key(&text), key(&text.replace("num_warps=8", "num_warps=4")));
        }
    }
}
