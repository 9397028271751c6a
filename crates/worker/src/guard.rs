//! Whether what the judge relies on is still what it was before a file was loaded.
//!
//! Looked at from Rust, object by object: nothing that Python code can replace is called for it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PySet};

/// Modules whose functions and classes must stay what they are.
const MODULES: &[&str] = &[
    "builtins",
    "gc",
    "os",
    "threading",
    "_thread",
    "time",
    "torch",
    "torch._C",
    "torch.autograd",
    "torch.cuda",
    "torch.cuda.memory",
    "torch.cuda.streams",
    "torch.nn.functional",
    "torch.testing",
    "torch.utils._python_dispatch",
    "triton",
    "triton.compiler.compiler",
    "triton.language",
    "triton.runtime.driver",
    "triton.runtime.jit",
    "triton.testing",
    // Ours: what they do is not timed.
    "_warpsmith_chance",
    "_warpsmith_contents",
    "_warpsmith_inputs",
    "_warpsmith_poison",
    "_warpsmith_raw",
    "_warpsmith_shim",
    "_warpsmith_weights",
];

/// Classes whose methods must stay what they are: module and name.
const CLASSES: &[(&str, &str)] = &[
    ("torch", "Tensor"),
    ("torch.cuda", "Event"),
    ("torch.cuda", "Stream"),
    ("torch.autograd", "Function"),
    ("_warpsmith_raw", "Memory"),
    ("_warpsmith_raw", "Tensor"),
    ("triton.compiler.compiler", "CompiledKernel"),
    ("triton.runtime.jit", "JITFunction"),
];

/// What is asked of tensors to give results away. Torch's own come from classes below: another one would stand in front of them.
const ASKED: &[&str] = &[
    "contiguous",
    "copy_",
    "data_ptr",
    "detach",
    "device",
    "dtype",
    "element_size",
    "numel",
    "requires_grad",
    "resolve_conj",
    "resolve_neg",
    "shape",
    "stride",
    "untyped_storage",
];

/// Expressions for settings of the whole process that change what is computed or how it is measured.
const SETTINGS: &[&str] = &[
    "torch.get_default_dtype()",
    "torch.get_float32_matmul_precision()",
    "torch.backends.cuda.matmul.allow_tf32",
    "torch.backends.cudnn.allow_tf32",
    "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
    "torch.is_grad_enabled()",
    "__import__('sys').gettrace()",
    "__import__('sys').getprofile()",
    "torch.is_inference_mode_enabled()",
    "torch._C._len_torch_dispatch_stack()",
    "torch._C._len_torch_function_stack()",
    "torch.cuda.current_stream().cuda_stream if torch.cuda.is_initialized() else 0",
];

/// Where something stands, as a path; the members among which it stands; its name and itself.
type Named<'py> = (String, Bound<'py, PyMapping>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// What there was before.
pub(super) struct Guard<'py> {
    names: Vec<Named<'py>>,
    /// [`ASKED`], with the class and what it has for the name.
    asked: Vec<(&'static str, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    overrides: Option<Bound<'py, PySet>>,
    overridden: usize,
    settings: Vec<(&'static str, Bound<'py, PyAny>, String)>,
}

impl<'py> Guard<'py> {
    /// Notes what there is.
    pub(super) fn new(py: Python<'py>) -> PyResult<Self> {
        let mut names = Vec::new();
        for module in MODULES {
            // What a release does not have needs no guard.
            if let Ok(imported) = py.import(*module) {
                note(module, &imported.getattr("__dict__")?.cast_into()?, &mut names)?;
            }
        }
        for (module, class) in CLASSES {
            if let Ok(class_) = py.import(*module).and_then(|module| module.getattr(*class)) {
                let members = PyDict::new(py);
                members.update(class_.getattr("__dict__")?.cast::<PyMapping>()?)?;
                let at = format!("{module}.{class}");
                note(&at, &members.into_mapping(), &mut names)?;
                // The members are looked up in the class as it will be.
                let live: Bound<'py, PyMapping> = class_.getattr("__dict__")?.cast_into()?;
                names
                    .iter_mut()
                    .filter(|(name, ..)| name.starts_with(&format!("{at}.")))
                    .for_each(|it| it.1 = live.clone());
            }
        }
        let mut asked = Vec::new();
        if let Ok(class) = py.import("torch").and_then(|torch| torch.getattr("Tensor")) {
            for name in ASKED {
                asked.push((*name, class.clone(), class.getattr(*name)?));
            }
        }
        let overrides = py.import("torch.library").and_then(|library| library.getattr("_impls"));
        let overrides = overrides.ok().and_then(|set| set.cast_into::<PySet>().ok());
        let globals = PyDict::new(py);
        if let Ok(torch) = py.import("torch") {
            globals.set_item("torch", torch)?;
        }
        let mut settings = Vec::new();
        for setting in SETTINGS {
            let code = format!("lambda: {setting}");
            let asked = py.import("builtins")?.getattr("eval")?.call1((code, &globals))?;
            if let Ok(value) = asked.call0() {
                settings.push((*setting, asked, value.repr()?.to_string()));
            }
        }
        let overridden = aten(overrides.as_ref());
        Ok(Self { names, asked, overrides, overridden, settings })
    }

    /// What is another now, in words.
    pub(super) fn changed(&self) -> Vec<String> {
        let is_other =
            |(_, members, name, value): &&Named<'py>| members.get_item(name).map_or(true, |now| !now.is(value));
        let mut changed: Vec<String> =
            self.names.iter().filter(is_other).map(|(name, ..)| format!("`{name}` was replaced")).collect();
        for (name, class, before) in &self.asked {
            let what = format!("`torch.Tensor.{name}` was replaced");
            if class.getattr(*name).map_or(true, |now| !now.is(before)) && !changed.contains(&what) {
                changed.push(what);
            }
        }
        if aten(self.overrides.as_ref()) > self.overridden {
            changed.push("an operator of torch was given another implementation".to_owned());
        }
        for (setting, asked, before) in &self.settings {
            match asked.call0().and_then(|now| Ok(now.repr()?.to_string())) {
                Ok(now) if now == *before => {}
                Ok(now) => changed.push(format!("`{setting}` was set from {before} to {now}")),
                Err(_) => changed.push(format!("`{setting}` cannot be asked any more")),
            }
        }
        changed
    }
}

/// Notes what can be called among the members.
fn note<'py>(at: &str, members: &Bound<'py, PyMapping>, names: &mut Vec<Named<'py>>) -> PyResult<()> {
    for item in members.items()?.try_iter()? {
        let (name, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
        // A name for a module is given when the module is first imported.
        if value.is_callable() || value.hasattr("__get__")? {
            names.push((format!("{at}.{}", name.str()?), members.clone(), name, value));
        }
    }
    Ok(())
}

/// How many operators of torch's own have implementations in Python.
fn aten(overrides: Option<&Bound<'_, PySet>>) -> usize {
    overrides.map_or(0, |set| {
        set.iter().filter(|key| key.extract::<String>().is_ok_and(|key| key.starts_with("aten/"))).count()
    })
}
