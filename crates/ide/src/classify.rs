//! Classifies the names in a kernel: constexpr, pointer, tile.

use std::collections::HashMap;

use model::analysis::types::access::pointers;
use model::analysis::types::{AbstractValue, infer};
use model::api::TritonTarget;
use model::kernel::ast::{ExprKind, walk_expressions};
use model::kernel::{Kernel, Module};
use model::syntax::Span;

/// The properties of a value that are certain; all false where nothing is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NameClass {
    /// The value is known at compile time.
    pub constexpr: bool,
    /// The value is a pointer, a tile of pointers, a block pointer or a tensor descriptor.
    pub pointer: bool,
    /// The value is a tile, not a scalar.
    pub tile: bool,
}

impl NameClass {
    fn of(value: &AbstractValue<'_>) -> Self {
        let plain = Self::default();
        match value {
            AbstractValue::Const(_) => Self { constexpr: true, ..plain },
            AbstractValue::Tile(tile) => {
                let is_address = tile.about.index().is_some_and(|index| index.base.is_some());
                Self { pointer: tile.element.is_pointer() || is_address, tile: tile.is_block(), ..plain }
            }
            AbstractValue::BlockPointer(_) | AbstractValue::Descriptor(_) => Self { pointer: true, ..plain },
            _ => plain,
        }
    }

    /// The properties that both have.
    fn and(self, other: Self) -> Self {
        Self {
            constexpr: self.constexpr && other.constexpr,
            pointer: self.pointer && other.pointer,
            tile: self.tile && other.tile,
        }
    }
}

/// The classes of all names in a kernel.
#[derive(Debug)]
pub struct NameClasses<'a> {
    kernel: &'a Kernel,
    places: HashMap<Span, NameClass>,
    params: HashMap<&'a str, NameClass>,
}

impl<'a> NameClasses<'a> {
    /// Classifies the names of `kernel`, which is `module.kernels[index]`.
    #[must_use]
    pub fn new(module: &'a Module, text: &str, target: TritonTarget, index: usize, kernel: &'a Kernel) -> Self {
        let mut places: HashMap<Span, NameClass> = HashMap::new();
        for (span, value) in &infer(module, text, target, index, true).types {
            let class = NameClass::of(value);
            places.entry(*span).and_modify(|known| *known = known.and(class)).or_insert(class);
        }
        // A parameter may be known to be a pointer although its element type is not.
        let pointers = pointers(module, kernel);
        let pointer = NameClass { pointer: true, ..NameClass::default() };
        let mut params: HashMap<&str, NameClass> = pointers.iter().map(|name| (*name, pointer)).collect();
        walk_expressions(&kernel.body, &mut |expr| {
            if let ExprKind::Name(name) = &expr.kind
                && let Some(param) = kernel.param(name)
                && let Some(class) = places.get_mut(&expr.span)
            {
                if *class == NameClass::default() {
                    *class = params.get(param.name.as_str()).copied().unwrap_or_default();
                }
                params.entry(&param.name).or_insert(*class);
            }
        });
        Self { kernel, places, params }
    }

    /// The kernel whose names these are.
    #[must_use]
    pub fn kernel(&self) -> &'a Kernel {
        self.kernel
    }

    /// The class of `name` where it occurs at `span`.
    #[must_use]
    pub fn at(&self, name: &str, span: Span) -> NameClass {
        let param = self.kernel.param(name);
        if param.is_some_and(|param| param.constexpr) {
            return NameClass { constexpr: true, ..NameClass::default() };
        }
        // In the signature, a parameter has the class of its first use in the body.
        let in_head = param.and_then(|param| self.params.get(param.name.as_str()));
        self.places.get(&span).or(in_head).copied().unwrap_or_default()
    }
}
