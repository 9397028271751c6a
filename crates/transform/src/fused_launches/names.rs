//! Renames the parameters and names of two kernels for the fused one.

use std::collections::HashMap;

use model::kernel::Param;
use model::kernel::ast::walk_expressions;

use super::form::Form;
use super::side::{Side, is_tile_size, times_bound};
use crate::names::bound_in;
use crate::words::{fresh, has_word};

/// The names of both kernels. Those of the owner stay.
pub(super) struct FusedNames<'a> {
    pub(super) owner: &'a Side<'a>,
    pub(super) guest: &'a Side<'a>,
    /// The new names of the guest's names.
    pub(super) renamed: HashMap<&'a str, String>,
    /// Parameters that the owner does not have.
    pub(super) added: Vec<&'a Param>,
    /// Text that contains all words in use.
    taken: String,
}

impl<'a> FusedNames<'a> {
    pub(super) fn of(owner: &'a Side<'a>, guest: &'a Side<'a>) -> Option<Self> {
        let text = |side: &Side<'a>| side.around.text.get(side.kernel.def_span.start..side.kernel.def_span.end);
        let taken = format!("{}\n{}", text(owner)?, text(guest)?);
        let (renamed, added) = Default::default();
        let mut names = Self { owner, guest, renamed, added, taken };
        for param in &guest.kernel.params {
            match names.same_param(param) {
                Some(same) => {
                    names.renamed.insert(&param.name, same);
                }
                None => names.added.push(param),
            }
        }
        Some(names)
    }

    /// The owner's parameter that gets the same argument.
    fn same_param(&self, param: &Param) -> Option<String> {
        let (owner, guest) = (self.owner, self.guest);
        let form = guest.form_of_param(&param.name);
        let is_same = |other: &&Param| {
            let is_number =
                other.name == param.name || is_tile_size(owner, &other.name) && is_tile_size(guest, &param.name);
            other.constexpr == param.constexpr
                && (!param.constexpr || is_number)
                && owner.passed(&other.name).is_some()
                && owner.form_of_param(&other.name) == form
                && times_bound(owner.kernel, &other.name) == 0
        };
        guest.passed(&param.name)?;
        let by_name = owner.kernel.params.iter().filter(|other| other.name == param.name);
        let mut all = by_name.chain(&owner.kernel.params);
        all.find(is_same).filter(|_| times_bound(guest.kernel, &param.name) == 0).map(|other| other.name.clone())
    }

    /// The owner's name for a value of this form.
    pub(super) fn known(&self, form: &Form, name: &str) -> Option<String> {
        let last = &self.owner.last;
        if matches!(form, Form::Of(_, parts) if parts.is_empty()) {
            return None;
        }
        let by_name = last.get_key_value(name).filter(|(_, known)| *known == form);
        by_name.or_else(|| last.iter().find(|(_, known)| *known == form)).map(|(name, _)| (*name).to_owned())
    }

    /// Renames the guest's names that mean something else in the owner; `None` where one of them would hide a name of
    /// the file.
    pub(super) fn keep_apart(&mut self) -> Option<()> {
        let (owner, guest) = (self.owner, self.guest);
        let text = owner.around.text.get(owner.kernel.def_span.start..owner.kernel.def_span.end)?;
        let locals = bound_in(&guest.kernel.body)?;
        let params = guest.kernel.params.iter().map(|param| param.name.as_str());
        for name in locals.iter().copied().chain(params) {
            if !self.renamed.contains_key(name) && has_word(text, name) {
                let other = self.fresh(&format!("{name}_2"));
                self.renamed.insert(name, other);
            }
        }
        let mut is_hidden = false;
        walk_expressions(&guest.kernel.body, &mut |expr| {
            let Some(name) = expr.as_name() else { return };
            let is_own = locals.contains(name) || guest.kernel.param(name).is_some();
            is_hidden |= !is_own && (owner.kernel.locals.contains(name) || owner.kernel.param(name).is_some());
        });
        (!is_hidden).then_some(())
    }

    pub(super) fn fresh(&mut self, base: &str) -> String {
        let name = fresh(&self.taken, base);
        self.taken += &format!(" {name}");
        name
    }

    /// Whether this is a name of the owner.
    pub(super) fn is_owners(&self, text: &str) -> bool {
        self.owner.kernel.locals.contains(text)
    }

    /// The name in the fused kernel for a name of the guest.
    pub(super) fn new_name(&self, name: &str) -> String {
        self.renamed.get(name).cloned().unwrap_or_else(|| name.to_owned())
    }

    /// The name in the fused kernel for a parameter.
    pub(super) fn param(&self, side: &Side<'_>, name: &str) -> String {
        if std::ptr::eq(side, self.owner) { name.to_owned() } else { self.new_name(name) }
    }
}
