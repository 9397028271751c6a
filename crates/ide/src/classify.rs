//! What kind of thing the names in a kernel stand for: constexpr, pointer, tile.

use std::collections::HashMap;

use model::analysis::types::access::pointers;
use model::analysis::types::{Value, infer};
use model::api::Target;
use model::kernel::ast::{ExprKind, walk_expressions};
use model::kernel::{Kernel, Module};
use model::syntax::Span;

/// What is known about a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class {
    /// It is known when the kernel is compiled.
    pub constexpr: bool,
    /// It is a pointer, or a tile of pointers.
    pub pointer: bool,
    /// It is a tile.
    pub tile: bool,
}

impl Class {
    fn of(value: &Value<'_>) -> Self {
        let plain = Self::default();
        match value {
            Value::Const(_) => Self { constexpr: true, ..plain },
            Value::Tile(tile) => {
                let is_address = tile.about.index().is_some_and(|index| index.base.is_some());
                Self { pointer: tile.element.is_pointer() || is_address, tile: tile.is_block(), ..plain }
            }
            Value::BlockPointer(_) | Value::Descriptor(_) => Self { pointer: true, ..plain },
            _ => plain,
        }
    }

    /// What both are.
    fn and(self, other: Self) -> Self {
        Self {
            constexpr: self.constexpr && other.constexpr,
            pointer: self.pointer && other.pointer,
            tile: self.tile && other.tile,
        }
    }
}

/// What is known about the names of a kernel.
#[derive(Debug)]
pub struct Classes<'a> {
    kernel: &'a Kernel,
    places: HashMap<Span, Class>,
    params: HashMap<&'a str, Class>,
}

impl<'a> Classes<'a> {
    /// Those of `kernel`, which is `module.kernels[index]`.
    #[must_use]
    pub fn new(module: &'a Module, text: &str, target: Target, index: usize, kernel: &'a Kernel) -> Self {
        let mut places: HashMap<Span, Class> = HashMap::new();
        for (span, value) in &infer(module, text, target, index, true).types {
            let class = Class::of(value);
            places.entry(*span).and_modify(|known| *known = known.and(class)).or_insert(class);
        }
        // Of what it points to nothing may be known.
        let pointers = pointers(module, kernel);
        let pointer = Class { pointer: true, ..Class::default() };
        let mut params: HashMap<&str, Class> = pointers.iter().map(|name| (*name, pointer)).collect();
        walk_expressions(&kernel.body, &mut |expr| {
            if let ExprKind::Name(name) = &expr.kind
                && let Some(param) = kernel.param(name)
                && let Some(class) = places.get_mut(&expr.span)
            {
                if *class == Class::default() {
                    *class = params.get(param.name.as_str()).copied().unwrap_or_default();
                }
                params.entry(&param.name).or_insert(*class);
            }
        });
        Self { kernel, places, params }
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &'a Kernel {
        self.kernel
    }

    /// What `name` is at a place.
    #[must_use]
    pub fn at(&self, name: &str, span: Span) -> Class {
        let param = self.kernel.param(name);
        if param.is_some_and(|param| param.constexpr) {
            return Class { constexpr: true, ..Class::default() };
        }
        // A parameter is in its head what it is where it is read first.
        let in_head = param.and_then(|param| self.params.get(param.name.as_str()));
        self.places.get(&span).or(in_head).copied().unwrap_or_default()
    }
}
