//! The documentation page of a rule, which `warpsmith explain`, the manual and hover share.

use super::declaration::Declaration;

impl Declaration {
    /// The rule's page as Markdown.
    #[must_use]
    pub fn page(&self) -> String {
        let Self { code, name, severity, summary, since, doc, .. } = self;
        let fix = if self.fixable { "offers a fix" } else { "offers no fix" };
        format!(
            "# {code} {name}\n\nFinds {summary}.\n\n\
             {severity} · family: {family} · {fix} · since {since}\n\n\
             {doc}\n\n\
             ## Turning it off\n\n\
             For one line, put a comment at its end; for a file, anywhere in it; for a project, into its settings:\n\n\
             ```python\n# warpsmith: ignore[{code}]\n# warpsmith: ignore-file[{code}]\n```\n\n\
             ```toml\nignore = [\"{name}\"]\n```\n",
            doc = doc.trim(),
            family = self.family(),
        )
    }
}
