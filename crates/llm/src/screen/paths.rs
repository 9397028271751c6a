//! Checks of qualified names: those that reach further than a kernel needs, and modules that are passed around.

use tree_sitter::Node;

use model::syntax::field;

use super::objection::ObjectionKind;
use super::screened::Screened;

/// Prefixes of names that do more than arithmetic on a device.
const POWERS: &[(&str, ObjectionKind)] = &[
    ("contextlib.redirect_stderr", ObjectionKind::Patch),
    ("contextlib.redirect_stdout", ObjectionKind::Patch),
    ("functools.update_wrapper", ObjectionKind::Patch),
    ("numpy.ctypeslib", ObjectionKind::Outside),
    ("numpy.fromfile", ObjectionKind::Outside),
    ("numpy.load", ObjectionKind::Outside),
    ("numpy.memmap", ObjectionKind::Outside),
    ("numpy.save", ObjectionKind::Outside),
    ("torch.UntypedStorage", ObjectionKind::Outside),
    ("torch._C", ObjectionKind::Inspection),
    ("torch._dynamo", ObjectionKind::Dynamic),
    ("torch._inductor", ObjectionKind::Dynamic),
    ("torch.autograd.graph", ObjectionKind::Concurrency),
    ("torch.autograd.profiler", ObjectionKind::Inspection),
    ("torch.classes", ObjectionKind::Outside),
    ("torch.cuda.CUDAGraph", ObjectionKind::Concurrency),
    ("torch.cuda.ExternalStream", ObjectionKind::Concurrency),
    ("torch.cuda.MemPool", ObjectionKind::Keeps),
    ("torch.cuda.Stream", ObjectionKind::Concurrency),
    ("torch.cuda.change_current_allocator", ObjectionKind::Patch),
    ("torch.cuda.cudart", ObjectionKind::Outside),
    ("torch.cuda.graph", ObjectionKind::Concurrency),
    ("torch.cuda.graphs", ObjectionKind::Concurrency),
    ("torch.cuda.make_graphed_callables", ObjectionKind::Concurrency),
    ("torch.cuda.manual_seed", ObjectionKind::Patch),
    ("torch.cuda.manual_seed_all", ObjectionKind::Patch),
    ("torch.cuda.set_device", ObjectionKind::Patch),
    ("torch.cuda.set_stream", ObjectionKind::Concurrency),
    ("torch.cuda.stream", ObjectionKind::Concurrency),
    ("torch.distributed", ObjectionKind::Concurrency),
    ("torch.export", ObjectionKind::Outside),
    ("torch.from_file", ObjectionKind::Outside),
    ("torch.frombuffer", ObjectionKind::Outside),
    ("torch.fx", ObjectionKind::Dynamic),
    ("torch.hub", ObjectionKind::Outside),
    ("torch.jit.load", ObjectionKind::Outside),
    ("torch.jit.save", ObjectionKind::Outside),
    ("torch.library", ObjectionKind::Patch),
    ("torch.load", ObjectionKind::Outside),
    ("torch.manual_seed", ObjectionKind::Patch),
    ("torch.multiprocessing", ObjectionKind::Concurrency),
    ("torch.nn.modules.module", ObjectionKind::Patch),
    ("torch.ops.aten.from_file", ObjectionKind::Outside),
    ("torch.ops.load_library", ObjectionKind::Outside),
    ("torch.overrides", ObjectionKind::Patch),
    ("torch.package", ObjectionKind::Outside),
    ("torch.profiler", ObjectionKind::Inspection),
    ("torch.save", ObjectionKind::Outside),
    ("torch.seed", ObjectionKind::Patch),
    ("torch.serialization", ObjectionKind::Outside),
    ("torch.set_default_device", ObjectionKind::Patch),
    ("torch.set_default_dtype", ObjectionKind::Patch),
    ("torch.set_default_tensor_type", ObjectionKind::Patch),
    ("torch.set_deterministic_debug_mode", ObjectionKind::Patch),
    ("torch.set_float32_matmul_precision", ObjectionKind::Patch),
    ("torch.set_flush_denormal", ObjectionKind::Patch),
    ("torch.set_num_threads", ObjectionKind::Patch),
    ("torch.set_rng_state", ObjectionKind::Patch),
    ("torch.use_deterministic_algorithms", ObjectionKind::Patch),
    ("torch.utils._python_dispatch", ObjectionKind::Patch),
    ("torch.utils.cpp_extension", ObjectionKind::Outside),
    ("torch.utils.data", ObjectionKind::Outside),
    ("torch.utils.hooks", ObjectionKind::Concurrency),
    ("torch.utils.model_zoo", ObjectionKind::Outside),
    ("torch.default_generator", ObjectionKind::Patch),
    ("torch.random", ObjectionKind::Patch),
    ("torch.utils.swap_tensors", ObjectionKind::Patch),
    ("triton._C", ObjectionKind::Inspection),
    ("triton.backends", ObjectionKind::Outside),
    ("triton.knobs", ObjectionKind::Environment),
    ("triton.runtime.build", ObjectionKind::Outside),
    ("triton.runtime.cache", ObjectionKind::Outside),
    ("triton.runtime.driver.set_active", ObjectionKind::Patch),
    ("typing.ForwardRef", ObjectionKind::Dynamic),
    ("typing.get_type_hints", ObjectionKind::Dynamic),
];

/// Modules that happen to be attributes of others, such as `torch.os`.
const HELD: &[(&str, ObjectionKind)] = &[
    ("__builtins__", ObjectionKind::Dynamic),
    ("_os", ObjectionKind::Outside),
    ("_sys", ObjectionKind::Inspection),
    ("_thread", ObjectionKind::Concurrency),
    ("atexit", ObjectionKind::Concurrency),
    ("builtins", ObjectionKind::Dynamic),
    ("ctypes", ObjectionKind::Outside),
    ("gc", ObjectionKind::Inspection),
    ("importlib", ObjectionKind::Dynamic),
    ("inspect", ObjectionKind::Inspection),
    ("io", ObjectionKind::Outside),
    ("os", ObjectionKind::Outside),
    ("pathlib", ObjectionKind::Outside),
    ("pickle", ObjectionKind::Outside),
    ("shutil", ObjectionKind::Outside),
    ("socket", ObjectionKind::Outside),
    ("subprocess", ObjectionKind::Outside),
    ("sys", ObjectionKind::Inspection),
    ("tempfile", ObjectionKind::Outside),
    ("threading", ObjectionKind::Concurrency),
    ("traceback", ObjectionKind::Inspection),
    ("weakref", ObjectionKind::Inspection),
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
pub(super) fn power_of(path: &str) -> Option<ObjectionKind> {
    let parts: Vec<&str> = path.split('.').collect();
    if parts.iter().any(|part| ENVIRONMENT.contains(part)) {
        return Some(ObjectionKind::Environment);
    }
    let begins = |power: &str| path.strip_prefix(power).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if let Some((_, what)) = POWERS.iter().find(|(power, _)| begins(power)) {
        return Some(*what);
    }
    parts.iter().skip(1).find_map(|part| is_held(part))
}

/// The objection to a module that is an attribute of something, judged by its name alone. Tensors have no attributes
/// with these names.
pub(super) fn is_held(name: &str) -> Option<ObjectionKind> {
    HELD.iter().find(|(module, _)| *module == name).map(|(_, what)| *what)
}

/// The objection to a member of a module that is itself an objection.
fn power_of_module(path: &str) -> Option<ObjectionKind> {
    let first = path.split('.').next().unwrap_or_default();
    power_of(path).or_else(|| is_held(first))
}

pub(super) fn look(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
    if !is_read(node) {
        return;
    }
    for path in screened.paths(node) {
        if let Some(what) = power_of_module(&path) {
            add(what, &called(screened, node, &path));
        } else if is_module(screened, &path) && is_handed_on(screened, node) {
            add(ObjectionKind::Dynamic, &path);
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
