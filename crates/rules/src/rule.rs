//! A rule: its declaration and its check.

use super::context::RuleContext;
use super::declaration::Declaration;
use super::findings::Findings;

/// A lint rule: its declaration and its check.
#[derive(Debug)]
pub struct Rule {
    /// The code, name, severity and documentation of the rule.
    pub declaration: Declaration,
    /// Checks one file and reports its findings. It reports nothing where facts are unknown.
    pub check: fn(&RuleContext<'_>, &mut Findings<'_>),
}
