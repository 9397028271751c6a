//! Merges versions that differ only in the configurations of an autotuner, which chooses by its key.

use model::kernel::Config;
use model::syntax::{Span, normal_form};
use rules::{Edit, apply_edits};

use super::Two;
use crate::candidate::Candidate;
use crate::one_configuration::gap;

impl Two<'_> {
    /// Merges the configurations of both versions, followed by those of the original. `None` where the versions differ
    /// in something else, or where the key does not contain the size.
    pub fn in_configurations(&self, original: &Candidate) -> Option<String> {
        let (kept, other) = self.kept_and_other();
        let (mut blank, mut blank_other, mut edits) = (Vec::new(), Vec::new(), Vec::new());
        for kernel in &original.module.kernels {
            let all = configurations(original, &kernel.name);
            let Some(own) = configurations(kept, &kernel.name).filter(|_| kernel.autotune.is_some()) else { continue };
            let others = configurations(other, &kernel.name)?;
            let span = whole(own)?;
            blank.push(Edit { span, text: String::new() });
            blank_other.push(Edit { span: whole(others)?, text: String::new() });
            let known = texts(kept, own)?;
            let all = all.filter(|all| all.len() > 1)?;
            let mut new: Vec<&str> = Vec::new();
            for text in texts(other, others)?.into_iter().chain(texts(original, all)?) {
                if !known.contains(&text) && !new.contains(&text) {
                    new.push(text);
                }
            }
            let key = kernel.autotune.as_ref()?.key.as_ref()?;
            let is_chosen = self.size.param.as_ref().is_some_and(|param| key.contains(param));
            let gap = gap(original, all).filter(|_| is_chosen)?;
            let text = new.iter().map(|text| format!(",{gap}{text}")).collect();
            edits.push(Edit { span: Span::new(span.end, span.end), text });
        }
        let shape = |of: &Candidate, edits: &[Edit]| normal_form(&apply_edits(&of.text, edits));
        (!edits.is_empty() && shape(kept, &blank) == shape(other, &blank_other))
            .then(|| apply_edits(&kept.text, &edits))
    }
}

fn configurations<'a>(of: &'a Candidate, kernel: &str) -> Option<&'a [Config]> {
    of.module.kernel(kernel)?.autotune.as_ref()?.configs.as_deref()
}

fn whole(configs: &[Config]) -> Option<Span> {
    Some(Span::new(configs.first()?.span.start, configs.last()?.span.end))
}

fn texts<'a>(of: &'a Candidate, configs: &[Config]) -> Option<Vec<&'a str>> {
    configs.iter().map(|config| of.text.get(config.span.start..config.span.end)).collect()
}
