//! Reduced precision, and work left to torch. Both may be legitimate: they are reported, and the judge decides.

use tree_sitter::Node;

use model::syntax::field;

use super::objection::ObjectionKind;
use super::paths::power_of;
use super::screened::Screened;

/// Functions of torch that only prepare data and do not replace the work of a kernel.
const PREPARING: &[&str] = &[
    "Size",
    "Tensor",
    "arange",
    "as_strided",
    "as_tensor",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "compiled_with_cxx11_abi",
    "device",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "enable_grad",
    "finfo",
    "full",
    "full_like",
    "get_default_dtype",
    "iinfo",
    "inference_mode",
    "is_floating_point",
    "is_grad_enabled",
    "is_tensor",
    "manual_seed",
    "no_grad",
    "ones",
    "ones_like",
    "promote_types",
    "rand",
    "randint",
    "randn",
    "result_type",
    "set_grad_enabled",
    "tensor",
    "zeros",
    "zeros_like",
];
/// Tensor methods that do the work of a kernel.
const COMPUTING: &[&str] = &[
    "addmm",
    "argmax",
    "argmin",
    "baddbmm",
    "bmm",
    "cumprod",
    "cumsum",
    "dot",
    "einsum",
    "exp",
    "layer_norm",
    "log_softmax",
    "logsumexp",
    "matmul",
    "mean",
    "mm",
    "mv",
    "norm",
    "prod",
    "relu",
    "sigmoid",
    "softmax",
    "sort",
    "sum",
    "tanh",
    "topk",
    "var",
];
const OF_MODULES: &[&str] =
    &["torch.compile", "torch.fft.", "torch.jit.", "torch.linalg.", "torch.nn.", "torch.ops.", "torch.special."];
const NO_WORK: &[&str] = &["torch.nn.Module", "torch.nn.Parameter", "torch.jit.ignore", "torch.jit.unused"];

pub(super) fn look(screened: &Screened<'_>, node: Node<'_>, add: &mut dyn FnMut(ObjectionKind, &str)) {
    match node.kind() {
        "attribute" => {
            let name = screened.named(node, "attribute").unwrap_or_default();
            if matches!(name, "float16" | "bfloat16" | "half") || name.starts_with("float8") {
                add(ObjectionKind::Precision, name);
            }
        }
        "keyword_argument" => {
            let (name, value) = (screened.named(node, "name"), screened.named(node, "value"));
            let is_narrow = match (name, value) {
                (Some("allow_tf32"), Some(value)) => value != "False",
                (Some("input_precision"), Some(value)) => !value.contains("ieee"),
                _ => false,
            };
            if is_narrow {
                add(ObjectionKind::Precision, screened.text(node));
            }
        }
        "call" => {
            let Some(function) = field(node, "function") else { return };
            if let Some(name) = work(screened, function).filter(|_| !in_kernel(screened, node)) {
                add(ObjectionKind::Fallback, &name);
            }
        }
        "binary_operator" if screened.named(node, "operator") == Some("@") && !in_kernel(screened, node) => {
            add(ObjectionKind::Fallback, "@");
        }
        _ => {}
    }
}

/// The operation of a call, if torch computes it.
fn work(screened: &Screened<'_>, function: Node<'_>) -> Option<String> {
    let paths = screened.paths(function);
    if let Some(path) = paths.iter().find(|path| path.starts_with("torch.")) {
        let name = path.strip_prefix("torch.")?;
        let is_op =
            !name.contains('.') && !PREPARING.contains(&name) && name.starts_with(|c: char| c.is_ascii_lowercase());
        let is_of_module =
            OF_MODULES.iter().any(|module| path.starts_with(module)) && !NO_WORK.contains(&path.as_str());
        let is_setting = name.starts_with("is_") || name.starts_with("get_") || name.starts_with("set_");
        let is_work = ((is_op && !is_setting) || is_of_module) && power_of(path).is_none();
        return is_work.then(|| path.clone());
    }
    if !paths.is_empty() {
        return None;
    }
    let name = (function.kind() == "attribute").then(|| screened.named(function, "attribute")).flatten()?;
    COMPUTING.contains(&name).then(|| format!(".{name}"))
}

/// Whether a node is inside a function that Triton compiles.
fn in_kernel(screened: &Screened<'_>, node: Node<'_>) -> bool {
    let mut at = node.parent();
    while let Some(around) = at {
        if around.kind() == "decorated_definition" {
            let mut cursor = around.walk();
            let mut decorators = around.children(&mut cursor).filter(|child| child.kind() == "decorator");
            if decorators.any(|decorator| screened.text(decorator).contains("jit")) {
                return true;
            }
        }
        at = around.parent();
    }
    false
}
