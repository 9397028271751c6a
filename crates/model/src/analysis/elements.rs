//! The element types of tensors that host functions create.

use super::host::HostNames;
use super::types::dtype::Dtype;
use crate::kernel::ast::{Expr, ExprKind};

/// The element type of a tensor, where the host function states it: `torch.empty(…, dtype=torch.float16)`, `x.half()`,
/// `x.to(torch.bfloat16)`.
#[must_use]
pub fn element<'a>(names: &HostNames<'a>, tensor: &'a Expr) -> Option<Dtype> {
    let call = names.resolve(tensor).as_call()?;
    let ExprKind::Attribute { value, name, .. } = &call.func.kind else { return None };
    match (value.as_name(), name.as_str(), call.args.as_slice()) {
        (Some("torch"), ..) => number(call.argument("dtype", None)?),
        (_, "half", []) => Some(Dtype::Fp16),
        (_, "bfloat16", []) => Some(Dtype::Bf16),
        (_, "float", []) => Some(Dtype::Fp32),
        (_, "to", [dtype]) => number(&dtype.value),
        _ => None,
    }
}

/// The number type of a dtype of torch.
fn number(dtype: &Expr) -> Option<Dtype> {
    let path = dtype.dotted()?;
    let ["torch", name] = path.as_slice() else { return None };
    Dtype::of_torch(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::host::Hosts;
    use crate::kernel::Module;
    use crate::syntax::Source;

    #[test]
    fn element_types_are_read_from_tensor_creations_and_casts() {
        let text = "
import torch
def run(x, dtype):
    a = torch.empty(4, dtype=torch.float16)
    b = x.half()
    c = a
    d = x.to(torch.bfloat16)
    e = x.to(x.dtype)
    f = torch.empty(4, dtype=dtype)
    g = torch.empty(4)
    h = x.to(torch.float32, copy=True)
    k[(1,)](x)
";
        let module = Module::build(&Source::parse(text));
        let names = Hosts::new(&module).around(&module.launches[0]);
        let of = |name: &str| names.value(name).and_then(|value| element(&names, value));
        let found = ["a", "b", "c", "d", "e", "f", "g", "h"].map(of);
        let (half, brain) = (Some(Dtype::Fp16), Some(Dtype::Bf16));
        assert_eq!(found, [half, half, half, brain, None, None, None, None]);
    }
}
