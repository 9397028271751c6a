//! Python types by which values are distinguished, looked up once.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// The types.
pub(super) struct Types {
    pub(super) tensor: Py<PyType>,
    pub(super) parameter: Py<PyType>,
    pub(super) module: Py<PyType>,
    pub(super) dtype: Py<PyType>,
    pub(super) device: Py<PyType>,
    pub(super) enumeration: Py<PyType>,
    pub(super) slice: Py<PyType>,
    /// Types whose values are distinguished by their hash.
    pub(super) hashed: Vec<Py<PyType>>,
    /// The type of the first argument of an autograd function's static methods.
    pub(super) context: Py<PyType>,
}

impl Types {
    pub(super) fn get(py: Python<'_>) -> PyResult<&Self> {
        static TYPES: PyOnceLock<Types> = PyOnceLock::new();
        TYPES.get_or_try_init(py, || {
            let of = |module: &str, name: &str| -> PyResult<Py<PyType>> {
                Ok(py.import(module)?.getattr(name)?.cast_into::<PyType>()?.unbind())
            };
            let hashed =
                [("builtins", "range"), ("builtins", "frozenset"), ("pathlib", "PurePath"), ("numpy", "generic")];
            Ok(Self {
                hashed: hashed.into_iter().filter_map(|(module, name)| of(module, name).ok()).collect(),
                tensor: of("torch", "Tensor")?,
                parameter: of("torch.nn", "Parameter")?,
                module: of("torch.nn", "Module")?,
                dtype: of("torch", "dtype")?,
                device: of("torch", "device")?,
                enumeration: of("enum", "Enum")?,
                slice: of("builtins", "slice")?,
                context: of("torch.autograd.function", "FunctionCtx")?,
            })
        })
    }

    /// Whether a value is a tensor of torch's own classes, as opposed to a subclass with its own behaviour.
    pub(super) fn is_tensor(&self, value: &Bound<'_, PyAny>) -> bool {
        let class = value.get_type();
        class.is(&self.tensor) || class.is(&self.parameter)
    }
}
