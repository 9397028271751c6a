//! Checks of qualified names: those that reach further than a kernel needs, and modules that are passed around.

use tree_sitter::Node;

use model::syntax::field;

use super::{Screened, What};

/// Prefixes of names that do more than arithmetic on a device.
const POWERS: &[(&str, What)] = &[
    ("contextlib.redirect_stderr", What::Patch),
    ("contextlib.redirect_stdout", What::Patch),
    ("functools.update_wrapper", What::Patch),
    ("numpy.ctypeslib", What::Outside),
    ("numpy.fromfile", What::Outside),
    ("numpy.load", What::Outside),
    ("numpy.memmap", What::Outside),
    ("numpy.save", What::Outside),
    ("torch.UntypedStorage", What::Outside),
    ("torch._C", What::Inspection),
    ("torch._dynamo", What::Dynamic),
    ("torch._inductor", What::Dynamic),
    ("torch.autograd.graph", What::Concurrency),
    ("torch.autograd.profiler", What::Inspection),
    ("torch.classes", What::Outside),
    ("torch.cuda.CUDAGraph", What::Concurrency),
    ("torch.cuda.ExternalStream", What::Concurrency),
    ("torch.cuda.MemPool", What::Keeps),
    ("torch.cuda.Stream", What::Concurrency),
    ("torch.cuda.change_current_allocator", What::Patch),
    ("torch.cuda.cudart", What::Outside),
    ("torch.cuda.graph", What::Concurrency),
    ("torch.cuda.graphs", What::Concurrency),
    ("torch.cuda.make_graphed_callables", What::Concurrency),
    ("torch.cuda.manual_seed", What::Patch),
    ("torch.cuda.manual_seed_all", What::Patch),
    ("torch.cuda.set_device", What::Patch),
    ("torch.cuda.set_stream", What::Concurrency),
    ("torch.cuda.stream", What::Concurrency),
    ("torch.distributed", What::Concurrency),
    ("torch.export", What::Outside),
    ("torch.from_file", What::Outside),
    ("torch.frombuffer", What::Outside),
    ("torch.fx", What::Dynamic),
    ("torch.hub", What::Outside),
    ("torch.jit.load", What::Outside),
    ("torch.jit.save", What::Outside),
    ("torch.library", What::Patch),
    ("torch.load", What::Outside),
    ("torch.manual_seed", What::Patch),
    ("torch.multiprocessing", What::Concurrency),
    ("torch.nn.modules.module", What::Patch),
    ("torch.ops.aten.from_file", What::Outside),
    ("torch.ops.load_library", What::Outside),
    ("torch.overrides", What::Patch),
    ("torch.package", What::Outside),
    ("torch.profiler", What::Inspection),
    ("torch.save", What::Outside),
    ("torch.seed", What::Patch),
    ("torch.serialization", What::Outside),
    ("torch.set_default_device", What::Patch),
    ("torch.set_default_dtype", What::Patch),
    ("torch.set_default_tensor_type", What::Patch),
    ("torch.set_deterministic_debug_mode", What::Patch),
    ("torch.set_float32_matmul_precision", What::Patch),
    ("torch.set_flush_denormal", What::Patch),
    ("torch.set_num_threads", What::Patch),
    ("torch.set_rng_state", What::Patch),
    ("torch.use_deterministic_algorithms", What::Patch),
    ("torch.utils._python_dispatch", What::Patch),
    ("torch.utils.cpp_extension", What::Outside),
    ("torch.utils.data", What::Outside),
    ("torch.utils.hooks", What::Concurrency),
    ("torch.utils.model_zoo", What::Outside),
    ("torch.default_generator", What::Patch),
    ("torch.random", What::Patch),
    ("torch.utils.swap_tensors", What::Patch),
    ("triton._C", What::Inspection),
    ("triton.backends", What::Outside),
    ("triton.knobs", What::Environment),
    ("triton.runtime.build", What::Outside),
    ("triton.runtime.cache", What::Outside),
    ("triton.runtime.driver.set_active", What::Patch),
    ("typing.ForwardRef", What::Dynamic),
    ("typing.get_type_hints", What::Dynamic),
];

/// Modules that happen to be attributes of others, such as `torch.os`.
const HELD: &[(&str, What)] = &[
    ("__builtins__", What::Dynamic),
    ("_os", What::Outside),
    ("_sys", What::Inspection),
    ("_thread", What::Concurrency),
    ("atexit", What::Concurrency),
    ("builtins", What::Dynamic),
    ("ctypes", What::Outside),
    ("gc", What::Inspection),
    ("importlib", What::Dynamic),
    ("inspect", What::Inspection),
    ("io", What::Outside),
    ("os", What::Outside),
    ("pathlib", What::Outside),
    ("pickle", What::Outside),
    ("shutil", What::Outside),
    ("socket", What::Outside),
    ("subprocess", What::Outside),
    ("sys", What::Inspection),
    ("tempfile", What::Outside),
    ("threading", What::Concurrency),
    ("traceback", What::Inspection),
    ("weakref", What::Inspection),
];

const ENVIRONMENT: &[&str] = &["environ", "environb", "getenv", "putenv", "unsetenv"];

/// Submodules of imported modules.
const INNER: &[&str] = &[
    "torch.autograd",
    "torch.backends",
    "torch.backends.cuda",
    "torch.cuda",
    "torch.testing",
    "torch.utils",
    "triton.runtime",
    "triton.testing",
];

/// The objection to a qualified name, if there is one.
pub(super) fn power_of(path: &str) -> Option<What> {
    let parts: Vec<&str> = path.split('.').collect();
    if parts.iter().any(|part| ENVIRONMENT.contains(part)) {
        return Some(What::Environment);
    }
    let begins = |power: &str| path.strip_prefix(power).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if let Some((_, what)) = POWERS.iter().find(|(power, _)| begins(power)) {
        return Some(*what);
    }
    parts.iter().skip(1).find_map(|part| is_held(part))
}

/// The objection to a module that is an attribute of something, judged by its name alone. Tensors have no attributes
/// with these names.
pub(super) fn is_held(name: &str) -> Option<What> {
    HELD.iter().find(|(module, _)| *module == name).map(|(_, what)| *what)
}

/// The objection to a member of a module that is itself an objection.
fn power_of_module(path: &str) -> Option<What> {
    let first = path.split('.').next().unwrap_or_default();
    power_of(path).or_else(|| is_held(first))
}

pub(super) fn look(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(What, &str)) {
    if !is_read(node) {
        return;
    }
    for path in screened.paths(node) {
        if let Some(what) = power_of_module(&path) {
            add(what, &called(screened, node, &path));
        } else if is_module(screened, &path) && is_handed_on(screened, node) {
            add(What::Dynamic, &path);
        }
    }
}

/// Whether a node is a complete dotted name that is read.
fn is_read(node: Node<'_>) -> bool {
    if !matches!(node.kind(), "identifier" | "attribute") {
        return false;
    }
    let Some(parent) = node.parent() else { return false };
    match parent.kind() {
        "attribute"
        | "dotted_name"
        | "aliased_import"
        | "import_statement"
        | "import_from_statement"
        | "parameters" => false,
        "keyword_argument" | "default_parameter" | "typed_default_parameter" => field(parent, "name") != Some(node),
        "function_definition" | "class_definition" => field(parent, "name") != Some(node),
        "typed_parameter" | "global_statement" | "nonlocal_statement" => false,
        "assignment" => field(parent, "left") != Some(node),
        _ => true,
    }
}

/// A key of a name with its arguments, so that a use of one file does not permit the use of another.
fn called(screened: &Screened<'_>, node: Node<'_>, path: &str) -> String {
    let call = node.parent().filter(|parent| parent.kind() == "call" && field(*parent, "function") == Some(node));
    let args = call.and_then(|call| screened.named(call, "arguments"));
    format!("{path}{}", args.unwrap_or_default())
}

/// Whether a node is in a class body outside of its methods, so that it defines an attribute.
pub(super) fn in_class(node: Node<'_>) -> bool {
    let mut at = node.parent();
    while let Some(around) = at {
        match around.kind() {
            "class_definition" => return true,
            "function_definition" | "lambda" => return false,
            _ => at = around.parent(),
        }
    }
    false
}

fn is_module(screened: &Screened<'_>, path: &str) -> bool {
    screened.names.is_module(path) || INNER.contains(&path)
}

/// Whether a module is passed on so that it can no longer be followed. Attribute access, assignment to a name and tests
/// for it are allowed.
fn is_handed_on(screened: &Screened<'_>, node: Node<'_>) -> bool {
    if node.kind() == "identifier" && screened.scopes.is_local(node, screened.text(node)) {
        return false;
    }
    let Some(parent) = node.parent() else { return false };
    match parent.kind() {
        "parenthesized_expression" => is_handed_on(screened, parent),
        "comparison_operator" | "not_operator" | "if_statement" | "expression_statement" | "attribute" => false,
        // An assignment to a plain name can be followed.
        "assignment" => field(parent, "left").is_none_or(|name| name.kind() != "identifier") || in_class(parent),
        "argument_list" => {
            let function = parent.parent().and_then(|call| screened.named(call, "function"));
            !matches!(function, Some("getattr" | "hasattr" | "setattr"))
        }
        _ => true,
    }
}
