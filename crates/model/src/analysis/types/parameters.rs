//! The values of a kernel's parameters, derived from signatures, launches and uses.

use std::sync::Arc;

use super::engine::{Engine, Trace};
use super::index::{Atom, Index, LaneFact, Poly};
use super::shape::SymbolicSize;
use super::signature::{self, SignatureComment};
use super::value::{AbstractValue, Const, LaneType, RuntimeValue};
use crate::kernel::{Kernel, Param};

impl<'a> Engine<'a> {
    /// The value of a parameter of the analysed kernel.
    pub(super) fn parameter(
        &mut self,
        kernel: &'a Kernel,
        param: &'a Param,
        signature: Option<&SignatureComment>,
    ) -> AbstractValue<'a> {
        if param.variadic {
            return AbstractValue::Unknown;
        }
        if let Some(value) = signature.and_then(|signature| signature.value(&param.name)) {
            return match value {
                AbstractValue::Tile(tile) => AbstractValue::Tile(tile.knowing(self.about_parameter(&param.name))),
                value => value,
            };
        }
        // A parameter that the signature omits has its default.
        if signature.is_some()
            && let Some(default) = &param.default
            && let Some(value) = signature::literal(default)
        {
            return AbstractValue::Const(value);
        }
        // A helper may get a tile nevertheless, so the annotation proves nothing here.
        if param.constexpr && self.module.called_in_kernels().contains(&kernel.name) {
            return AbstractValue::Unknown;
        }
        if param.constexpr {
            return self.constant_parameter(param);
        }
        if self.trace != Trace::Likely && !self.roles.is_launched {
            return AbstractValue::Unknown;
        }
        let about = self.about_parameter(&param.name);
        let element = self.roles.elements.get(param.name.as_str()).copied();
        // A launch that passes a tensor passes a pointer.
        if element.is_some() || self.roles.dereferenced.contains(param.name.as_str()) {
            return AbstractValue::Tile(
                RuntimeValue::new(LaneType::Pointer(element), Some(Arc::default())).knowing(about),
            );
        }
        AbstractValue::Opaque(about)
    }

    /// The symbolic value of a parameter as an integer, or as the base of a pointer.
    fn about_parameter(&self, name: &str) -> LaneFact {
        let name: Arc<str> = name.into();
        if self.roles.pointers.contains(&*name) {
            return LaneFact::Index(Arc::new(Index {
                base: Some(name),
                poly: Poly::default(),
                axes: Vec::new(),
                narrow: Vec::new(),
            }));
        }
        LaneFact::scalar(Poly::atom(Atom::Param(name)))
    }

    /// The value of a compile-time parameter: the constant that all launches of the file agree on, else a symbol.
    fn constant_parameter(&self, param: &'a Param) -> AbstractValue<'a> {
        let used_as_size = param.name.chars().any(|c| c.is_ascii_uppercase());
        let mut values = self.roles.settings.iter().map(|setting| setting.value(&param.name).map(|(value, _)| value));
        if let Some(Some(first)) = values.next()
            && values.all(|value| value == Some(first))
            && used_as_size
        {
            return AbstractValue::int(first);
        }
        if self.roles.is_size(&param.name) {
            return AbstractValue::Const(Const::Symbol(SymbolicSize::of(&param.name)));
        }
        // A helper may get a tile for a parameter such as `offsets: tl.constexpr`.
        if !used_as_size && !self.roles.is_launched {
            return AbstractValue::Unknown;
        }
        // It may also be a flag, a dtype or a name.
        AbstractValue::Opaque(LaneFact::scalar(Poly::atom(Atom::Param(param.name.as_str().into()))))
    }
}
