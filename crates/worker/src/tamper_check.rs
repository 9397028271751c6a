//! The guard: it detects whether a loaded file has replaced anything that the judge relies on.
//!
//! It compares objects from Rust and calls nothing that Python code can replace. That the code of a function is replaced
//! is an audit event (`evasion`).

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet, PyMapping, PySet, PyTuple, PyType};

/// Modules whose functions and classes must stay unchanged.
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
    // The worker's own modules are listed as well; what they do is not timed.
    "_warpsmith_generators",
    "_warpsmith_contents",
    "_warpsmith_inputs",
    "_warpsmith_poison",
    "_warpsmith_raw",
    "_warpsmith_shim",
    "_warpsmith_weights",
];

/// Classes whose methods must stay unchanged: module and name.
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

/// The attributes through which results are exported. Torch defines them in base classes, so that an override in a
/// subclass would take precedence.
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

/// Expressions for process-wide settings that change the computation or its measurement.
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

/// The path of a member, the mapping that contains it, its name, and its value.
type Named<'py> = (String, Bound<'py, PyMapping>, Bound<'py, PyAny>, Bound<'py, PyAny>);

/// The state before the file was loaded.
pub(super) struct TamperCheck<'py> {
    names: Vec<Named<'py>>,
    /// The variables of enclosing functions that hold something callable: the path of the function, the cell, its value.
    closures: Vec<(String, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    /// Classes with their paths and the names of their members.
    classes: Vec<(String, Bound<'py, PyType>, Bound<'py, PyFrozenSet>)>,
    /// The keyword defaults of functions, which can change in place: the path of the function, its dictionary, a copy.
    defaults: Vec<(String, Bound<'py, PyDict>, Bound<'py, PyDict>)>,
    /// [`ASKED`], with the class and its attribute of that name.
    asked: Vec<(&'static str, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    overrides: Option<Bound<'py, PySet>>,
    overridden: usize,
    settings: Vec<(&'static str, Bound<'py, PyAny>, String)>,
}

impl<'py> TamperCheck<'py> {
    /// Records the present state.
    pub(super) fn new(py: Python<'py>) -> PyResult<Self> {
        let mut names = Vec::new();
        for module in MODULES {
            // A module that the installed release does not have needs no guard.
            if let Ok(imported) = py.import(*module) {
                note(module, &imported.getattr("__dict__")?.cast_into()?, &mut names)?;
            }
        }
        let mut classes: Vec<(String, Bound<'py, PyType>)> = names
            .iter()
            .filter_map(|(path, _, _, value)| Some((path.clone(), value.cast::<PyType>().ok()?.clone())))
            .filter(|(path, class)| is_of_module(path, class))
            .collect();
        for (module, class) in CLASSES {
            if let Ok(found) = py.import(*module).and_then(|module| module.getattr(*class)) {
                classes.push((format!("{module}.{class}"), found.cast_into()?));
            }
        }
        for (path, class) in &classes {
            note_class(path, class, &mut names)?;
        }
        let (mut closures, mut defaults) = (Vec::new(), Vec::new());
        for (path, _, _, value) in &names {
            note_closure(path, value, &mut closures)?;
            if let Ok(known) = value.getattr("__kwdefaults__").and_then(|known| Ok(known.cast_into::<PyDict>()?)) {
                defaults.push((path.clone(), known.clone(), known.copy()?));
            }
        }
        let members = |(path, class): (String, Bound<'py, PyType>)| -> PyResult<_> {
            let names = py.get_type::<PyFrozenSet>().call1((class.getattr("__dict__")?,))?.cast_into()?;
            Ok((path, class, names))
        };
        let classes = classes.into_iter().map(members).collect::<PyResult<Vec<_>>>()?;
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
        Ok(Self { names, closures, classes, defaults, asked, overrides, overridden, settings })
    }

    /// The changes since then, as text.
    pub(super) fn changed(&self) -> Vec<String> {
        let is_other =
            |(_, members, name, value): &&Named<'py>| members.get_item(name).map_or(true, |now| !now.is(value));
        let mut changed: Vec<String> =
            self.names.iter().filter(is_other).map(|(name, ..)| format!("`{name}` was replaced")).collect();
        for (path, cell, before) in &self.closures {
            if cell.getattr("cell_contents").map_or(true, |now| !now.is(before)) {
                changed.push(format!("what `{path}` calls was replaced"));
            }
        }
        for (path, class, before) in &self.classes {
            let shadowing = shadowing(class, before).unwrap_or_default();
            changed.extend(shadowing.into_iter().map(|name| format!("`{path}.{name}` was replaced")));
        }
        for (path, now, before) in &self.defaults {
            let is_same = |(name, value): (Bound<'py, PyAny>, Bound<'py, PyAny>)| {
                now.get_item(name).ok().flatten().is_some_and(|now| now.is(&value))
            };
            if now.len() != before.len() || !before.iter().all(is_same) {
                changed.push(format!("the defaults of `{path}` were changed"));
            }
        }
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
                Err(_) => changed.push(format!("`{setting}` can no longer be read")),
            }
        }
        changed
    }
}

/// Records the callable members of a mapping.
fn note<'py>(at: &str, members: &Bound<'py, PyMapping>, names: &mut Vec<Named<'py>>) -> PyResult<()> {
    for item in members.items()?.try_iter()? {
        let (name, value): (Bound<'py, PyAny>, Bound<'py, PyAny>) = item?.extract()?;
        // A module appears as an attribute of its package only after it is imported.
        if value.is_callable() || value.hasattr("__get__")? {
            names.push((format!("{at}.{}", name.str()?), members.clone(), name, value));
        }
    }
    Ok(())
}

/// Whether a class is defined in the module at whose path it is found, as opposed to imported there.
fn is_of_module(path: &str, class: &Bound<'_, PyType>) -> bool {
    let module = class.getattr("__module__").and_then(|module| module.extract::<String>());
    module.is_ok_and(|module| path.rsplit_once('.').is_some_and(|(of, _)| of == module))
}

/// Records the members of a class.
fn note_class<'py>(path: &str, class: &Bound<'py, PyType>, names: &mut Vec<Named<'py>>) -> PyResult<()> {
    let members = PyDict::new(class.py());
    members.update(class.getattr("__dict__")?.cast::<PyMapping>()?)?;
    let first = names.len();
    note(path, &members.into_mapping(), names)?;
    // The mapping proxy shows later changes of the class.
    let live: Bound<'py, PyMapping> = class.getattr("__dict__")?.cast_into()?;
    names.iter_mut().skip(first).for_each(|member| member.1 = live.clone());
    Ok(())
}

/// The names of new members of a class that hide members of the classes that it is derived from.
fn shadowing(class: &Bound<'_, PyType>, before: &Bound<'_, PyFrozenSet>) -> PyResult<Vec<String>> {
    let members: Bound<'_, PyMapping> = class.getattr("__dict__")?.cast_into()?;
    if members.len()? == before.len() {
        return Ok(Vec::new());
    }
    let above: Vec<Bound<'_, PyAny>> = class
        .getattr("__mro__")?
        .try_iter()?
        .skip(1)
        .map(|class| class?.getattr("__dict__"))
        .collect::<PyResult<_>>()?;
    let mut found = Vec::new();
    for name in members.keys()? {
        if !before.contains(&name)? && above.iter().any(|members| members.contains(&name).unwrap_or(false)) {
            found.push(name.extract()?);
        }
    }
    Ok(found)
}

/// Records what a function calls by variables of the functions around it.
fn note_closure<'py>(
    path: &str,
    value: &Bound<'py, PyAny>,
    closures: &mut Vec<(String, Bound<'py, PyAny>, Bound<'py, PyAny>)>,
) -> PyResult<()> {
    if value.get_type().name()? != "function" {
        return Ok(());
    }
    let Ok(cells) = value.getattr("__closure__")?.cast_into::<PyTuple>() else { return Ok(()) };
    for cell in cells {
        // A cell may be empty still.
        if let Ok(held) = cell.getattr("cell_contents")
            && held.is_callable()
        {
            closures.push((path.to_owned(), cell, held));
        }
    }
    Ok(())
}

/// The number of torch's own operators that have an implementation in Python.
fn aten(overrides: Option<&Bound<'_, PySet>>) -> usize {
    overrides.map_or(0, |set| {
        set.iter().filter(|key| key.extract::<String>().is_ok_and(|key| key.starts_with("aten/"))).count()
    })
}
