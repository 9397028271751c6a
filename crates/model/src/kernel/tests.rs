use super::*;
use crate::syntax::Source;

fn module(text: &str) -> Module {
    Module::build(&Source::parse(text))
}

const FILE: &str = r#"
import torch
import triton
import triton.language as tl

SIZE = 1024

@triton.heuristics({"EVEN": lambda args: args["n"] % 64 == 0})
@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 64}, num_warps=2),
        triton.Config({"BLOCK": 128}, 4, 3),
    ],
    key=["n"],
)
@triton.jit
def add(x, y, n: int, BLOCK: tl.constexpr, EVEN: "tl.constexpr" = True):
    pid = tl.program_id(0)
    helper(x, pid)

@triton.jit()
def helper(x, i):
    return x + i

def run(x, y):
    grid = lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)
    add[grid](x, y, x.numel(), num_stages=2)

class Op:
    def __call__(self, x):
        add[(1, 2)](x, *self.rest)
        add[1, 2](x)
"#;

#[test]
fn reads_kernels_with_their_decorators_in_any_order() {
    let module = module(FILE);
    let names: Vec<_> = module.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["add", "helper"]);
    let add = module.kernel("add").unwrap();
    let params: Vec<_> = add.params.iter().map(|param| (param.name.as_str(), param.constexpr)).collect();
    assert_eq!(params, [("x", false), ("y", false), ("n", false), ("BLOCK", true), ("EVEN", true)]);
    assert!(add.params[4].default.is_some());
    assert_eq!(add.heuristics.as_deref(), Some(&["EVEN".to_owned()][..]));
    let autotune = add.autotune.as_ref().unwrap();
    assert_eq!(autotune.key.as_deref(), Some(&["n".to_owned()][..]));
    let configs = autotune.configs.as_ref().unwrap();
    assert_eq!(configs[0].meta[0].0, "BLOCK");
    let options: Vec<_> = configs[1].options.iter().map(|(name, value)| (name.as_str(), value.as_int())).collect();
    assert_eq!(options, [("num_warps", Some(4)), ("num_stages", Some(3))]);
    assert!(add.plain && !add.nested && !add.has_error);
    assert!(module.called_in_kernels().contains("helper"));
}

#[test]
fn reads_launches_and_the_functions_around_them() {
    let module = module(FILE);
    let hosts: Vec<_> = module.hosts.iter().map(|host| host.qualname.as_str()).collect();
    assert_eq!(hosts, ["run", "Op.__call__"]);
    let launches: Vec<_> = module.launches_of("add").map(|launch| (launch.host, launch.args.len())).collect();
    assert_eq!(launches, [(Some(0), 4), (Some(1), 2), (Some(1), 1)]);
    assert_eq!(module.launches[0].grid.as_name(), Some("grid"));
    assert!(matches!(&module.launches[2].grid.kind, ast::ExprKind::Tuple(items) if items.len() == 2));
    assert_eq!(FILE.lines().nth(module.hosts[0].line), Some("def run(x, y):"));
}

#[test]
fn knows_triton_under_every_alias() {
    for (imports, direct) in [
        ("import triton\nimport triton.language as tl", true),
        ("import triton\nfrom triton import language as tl", true),
        ("from vllm.triton_utils import tl, triton", false),
        ("import triton\ntl = triton.language", true),
        ("try:\n    import triton\n    import triton.language as tl\nexcept ImportError:\n    tl = None", true),
        ("import triton\nimport triton.language as tl\ntl = dialect()", false),
    ] {
        let text = format!("{imports}\n\n@triton.jit\ndef k(x):\n    tl.load(x)\n");
        let module = module(&text);
        let kernel = module.kernels.first().unwrap_or_else(|| panic!("no kernel with {imports}"));
        let ast::StmtKind::Expr(expr) = &kernel.body[0].kind else { panic!() };
        let resolved = module.resolve_in(kernel, &expr.as_call().unwrap().func).unwrap();
        assert_eq!((resolved.path.as_str(), resolved.direct), ("triton.language.load", direct), "{imports}");
    }
}

#[test]
fn a_local_name_hides_an_import() {
    let module = module("import triton\nimport triton.language as tl\n@triton.jit\ndef k(tl):\n    tl.load(1)\n");
    let kernel = &module.kernels[0];
    let ast::StmtKind::Expr(expr) = &kernel.body[0].kind else { panic!() };
    assert_eq!(module.resolve_in(kernel, &expr.as_call().unwrap().func), None);
}

#[test]
fn a_name_bound_twice_is_no_certain_kernel() {
    let text = "import triton\n@triton.jit\ndef k(x):\n    pass\nk = wrap(k)\n";
    assert!(module(text).kernel("k").is_none());
    assert_eq!(module(text).kernels.len(), 1);
}

#[test]
fn deep_nesting_and_broken_code_are_survived() {
    let deep = format!("import triton\n@triton.jit\ndef k(x):\n    y = {}x{}\n", "(".repeat(3000), ")".repeat(3000));
    assert_eq!(module(&deep).kernels.len(), 1);
    let broken = "import triton\nimport triton.language as tl\n@triton.jit\ndef k(x):\n    y = tl.load(x,\n    z = [\n";
    let _ = module(broken);
}

/// Where the parser inserts a missing name, the name is empty, so nothing can refer to it.
#[test]
fn a_name_that_is_missing_is_no_global() {
    let module = module("import triton\n:\n    i = 1\nN = 2\n");
    let names: Vec<&str> = module.globals.iter().map(|global| global.name.as_str()).collect();
    assert_eq!(names, ["N"]);
}
