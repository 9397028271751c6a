//! Prompt templates: the shipped ones, and a user's own in their place.

use std::io::ErrorKind;
use std::path::Path;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use super::budget::{OptionalPart, all, describe, least, parts};
use super::quoting::{IncludedParts, shown};
use super::{BYTES_OF_TOKEN, Operator, Prompt, PromptContext, PromptError, tokens};

/// The version of the data that templates may refer to. It grows by one when something is removed or changes its
/// meaning.
const VERSION: u32 = 1;
/// The largest number of steps of a template; one that takes more is stopped.
const FUEL: u64 = 1_000_000;
/// The number of characters of the hash that names a set of templates.
const SHORT: usize = 12;

/// The name and the text of each shipped template.
const SHIPPED: [(&str, &str); 5] = [
    ("system", include_str!("../../../../config/prompts/system.md")),
    ("small", include_str!("../../../../config/prompts/small.md")),
    ("large", include_str!("../../../../config/prompts/large.md")),
    ("repair", include_str!("../../../../config/prompts/repair.md")),
    ("write", include_str!("../../../../config/prompts/write.md")),
];

impl Operator {
    fn template(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
            Self::Repair => "repair",
            Self::Write => "write",
        }
    }
}

/// The templates of all prompts.
#[derive(Debug)]
pub struct Templates {
    environment: Environment<'static>,
    version: String,
}

impl Templates {
    /// The shipped templates.
    ///
    /// # Panics
    /// Panics if a shipped template is invalid, which the tests rule out.
    pub fn shipped() -> Self {
        let shipped = SHIPPED.map(|(name, text)| (name, text.to_owned()));
        Self::of(&shipped).expect("the templates that are shipped are right")
    }

    /// The shipped templates, except those for which a folder has a file such as `small.md`.
    ///
    /// # Errors
    /// Returns an error when a file cannot be read, is for another version, or is not a valid template.
    pub fn with_overrides(folder: &Path) -> Result<Self, PromptError> {
        let mut texts = SHIPPED.map(|(name, text)| (name, text.to_owned()));
        for (name, text) in &mut texts {
            let path = folder.join(format!("{name}.md"));
            match std::fs::read_to_string(&path) {
                Ok(own) => *text = own,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(PromptError::Read { path, error }),
            }
        }
        Self::of(&texts)
    }

    fn of(texts: &[(&'static str, String)]) -> Result<Self, PromptError> {
        let mut environment = Environment::new();
        let mut syntax = SyntaxConfig::builder();
        syntax.trim_blocks(true).lstrip_blocks(true);
        if let Ok(syntax) = syntax.build() {
            environment.set_syntax(syntax);
        }
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        let mut hash = blake3::Hasher::new();
        for (name, text) in texts {
            let text = text.replace("\r\n", "\n");
            let body = text.strip_prefix(&format!("version: {VERSION}\n"));
            let body = body.ok_or(PromptError::Version { name, version: VERSION })?;
            hash.update(text.as_bytes()).update(&[0]);
            let added = environment.add_template_owned(*name, body.to_owned());
            added.map_err(|error| PromptError::Template { name, error })?;
        }
        let version = hash.finalize().to_hex()[..SHORT].to_owned();
        Ok(Self { environment, version })
    }

    /// A version that identifies this set of templates in transcripts; it changes with every text.
    pub fn version(&self) -> String {
        self.version.clone()
    }

    /// The prompt of an operator within `budget` tokens. If not everything fits, versions of the pool are left out from
    /// the slowest on, then the oldest attempts, then the least relevant methods and rules; those of them that fit into
    /// the rest are added back.
    ///
    /// # Errors
    /// Returns an error when a template is invalid, or when not even the code fits.
    pub fn render(
        &self,
        operator: Operator,
        context: &PromptContext<'_>,
        budget: usize,
    ) -> Result<Prompt, PromptError> {
        let (everything, order) = (all(operator, context), parts(operator, context));
        let without = |count: usize| {
            let mut choice = everything.clone();
            order[..count].iter().for_each(|part| choice.set(*part, false));
            choice
        };
        let attempt = |choice: &IncludedParts| {
            let prompt = self.fill(operator, context, choice)?;
            let needed = tokens(&prompt.system) + tokens(&prompt.user);
            Ok::<_, PromptError>((prompt, needed))
        };
        let (prompt, needed) = attempt(&everything)?;
        if needed <= budget {
            return Ok(prompt);
        }
        let (_, needed) = attempt(&without(order.len()))?;
        if needed > budget {
            return Err(PromptError::TooLong { needed, budget });
        }
        // A binary search for the smallest number of parts to leave out.
        let (mut few, mut enough) = (0, order.len());
        while enough - few > 1 {
            let middle = few + (enough - few) / 2;
            if attempt(&without(middle))?.1 <= budget { enough = middle } else { few = middle }
        }
        let mut choice = without(enough);
        let (mut best, mut used) = attempt(&choice)?;
        let mut gone: Vec<OptionalPart> = Vec::new();
        for part in order[..enough].iter().rev() {
            choice.set(*part, true);
            let fits = used + least(*part, context) / BYTES_OF_TOKEN <= budget;
            match if fits { Some(attempt(&choice)?) } else { None } {
                Some((prompt, needed)) if needed <= budget => (best, used) = (prompt, needed),
                _ => {
                    choice.set(*part, false);
                    gone.push(*part);
                }
            }
        }
        best.left_out = gone.iter().rev().map(|part| describe(*part, context)).collect();
        Ok(best)
    }

    fn fill(
        &self,
        operator: Operator,
        context: &PromptContext<'_>,
        choice: &IncludedParts,
    ) -> Result<Prompt, PromptError> {
        let values = shown(context, choice);
        let (system, user) = (self.text("system", &values)?, self.text(operator.template(), &values)?);
        Ok(Prompt { system, user, left_out: Vec::new() })
    }

    fn text(&self, name: &'static str, values: &Value) -> Result<String, PromptError> {
        let failed = |error| PromptError::Template { name, error };
        self.environment.get_template(name).map_err(failed)?.render(values).map_err(failed)
    }
}
