//! Sizes that differ between calls, as expressions of the function that launches.

use model::kernel::ast::{Expr, ExprKind, Stmt, StmtKind, argument};
use model::kernel::{HostFunction, Launch, Module};
use protocol::{ArgumentValue, TensorSpec, Workload};

use crate::candidate::Candidate;
use crate::launched::called_with;
use crate::written::{assigned, bindings, is_steady};

/// The greatest number of names that are followed.
const DEPTH: usize = 4;

/// An integer expression of the host function.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// The source text: `n_cols`, `x.shape[1]`.
    pub text: String,
    /// The value in each call.
    pub values: Vec<i64>,
    /// The host function, by its qualified name.
    pub(super) host: String,
    /// The kernel parameter that it is passed for, if any.
    pub(super) param: Option<String>,
    /// The names in the expression.
    names: Vec<String>,
}

/// All sizes that differ from call to call: first the numbers that launches pass, named ones before others, then the
/// sizes of tensors that the calls pass.
pub fn sizes(original: &Candidate, kernels: &[String], calls: &[Workload]) -> Vec<Size> {
    let module = &original.module;
    let mut found: Vec<(u8, Size)> = Vec::new();
    let launches = kernels.iter().flat_map(|kernel| module.launches_of(kernel).map(move |launch| (kernel, launch)));
    for (kernel, launch) in launches {
        let Some(host) = host_of(module, launch) else { continue };
        for (param, expr, is_constant) in arguments(module, kernel, launch) {
            let value = |call: &Workload| {
                recorded(call, kernel, param).or_else(|| Values { host, call: of_host(host, call)? }.of(expr, DEPTH))
            };
            let rank = if is_constant { 2 } else { u8::from(expr.as_name().is_none()) };
            let text = original.text.get(expr.span.start..expr.span.end).unwrap_or_default();
            let made = size(text, expr, host, calls.iter().map(value));
            found.extend(made.map(|size| (rank, Size { param: Some(param.to_owned()), ..size })));
        }
        for (name, dims) in shapes(host, calls) {
            for dim in 0..dims {
                let value = |call: &Workload| of_tensor(host, call, &name)?.shape.get(dim).copied();
                let (text, values) = (format!("{name}.shape[{dim}]"), calls.iter().map(value).collect::<Option<_>>());
                let (names, host) = (vec![name.clone()], host.qualname.clone());
                let made = |values| Size { text, values, host, names, param: None };
                found.extend(values.map(made).map(|size| (3, size)));
            }
        }
    }
    found.retain(|(_, size)| size.values.iter().any(|value| *value != size.values[0]));
    found.sort_by_key(|(rank, _)| *rank);
    let mut sizes: Vec<Size> = Vec::new();
    for (_, size) in found {
        if sizes.iter().all(|known| (&known.text, &known.host) != (&size.text, &size.host)) {
            sizes.push(size);
        }
    }
    sizes
}

fn host_of<'a>(module: &'a Module, launch: &Launch) -> Option<&'a HostFunction> {
    launch.host.filter(|_| !launch.has_error).map(|host| &module.hosts[host])
}

/// The launch arguments that may be sizes: the parameter, the expression, and whether the parameter is a constexpr.
fn arguments<'a>(module: &'a Module, kernel: &str, launch: &'a Launch) -> Vec<(&'a str, &'a Expr, bool)> {
    let Some(kernel) = module.kernel(kernel) else { return Vec::new() };
    let passed = kernel.params.iter().enumerate().filter_map(|(at, param)| {
        let expr = argument(&launch.args, &param.name, Some(at))?;
        let is_number = is_steady(expr) && expr.as_int().is_none();
        is_number.then_some((param.name.as_str(), expr, param.constexpr))
    });
    passed.collect()
}

fn size(text: &str, expr: &Expr, host: &HostFunction, values: impl Iterator<Item = Option<i64>>) -> Option<Size> {
    // Strides are not sizes.
    if is_stride(host, expr, DEPTH) || text.contains('\n') {
        return None;
    }
    let mut names = Vec::new();
    expr.walk(&mut |expr| names.extend(expr.as_name().map(str::to_owned)));
    let (text, host) = (text.to_owned(), host.qualname.clone());
    Some(Size { text, values: values.collect::<Option<_>>()?, host, names, param: None })
}

fn is_stride(host: &HostFunction, expr: &Expr, depth: usize) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= matches!(&part.kind, ExprKind::Attribute { name, .. } if name == "stride");
        if let (Some(name), true) = (part.as_name(), depth > 0) {
            let values = bindings(&host.body, name).into_iter().filter_map(|stmt| assigned(stmt, name));
            found |= values.into_iter().any(|value| is_stride(host, value, depth - 1));
        }
    });
    found
}

/// The values of a parameter in all recorded launches of a kernel.
fn recorded(call: &Workload, kernel: &str, param: &str) -> Option<i64> {
    let of_kernel = call.launches.iter().filter(|launch| launch.kernel == kernel);
    let mut given = of_kernel.map(|launch| launch.arguments.iter().find(|(name, _)| name == param).map(|(_, it)| it));
    let Some(Some(ArgumentValue::Int(first))) = given.next() else { return None };
    given.all(|other| other == Some(&ArgumentValue::Int(*first))).then_some(*first)
}

/// The call, if it is a call of the host function itself.
fn of_host<'a>(host: &HostFunction, call: &'a Workload) -> Option<&'a Workload> {
    (call.entry == host.qualname).then_some(call)
}

/// The tensor of a call that a name refers to, if the name never refers to a tensor of another shape.
fn of_tensor<'a>(host: &HostFunction, call: &'a Workload, name: &str) -> Option<&'a TensorSpec> {
    match called_with(host, of_host(host, call)?, name)? {
        ArgumentValue::Tensor(spec) if keeps_shape(host, name) => Some(spec),
        _ => None,
    }
}

/// The tensors that are passed, each with its number of dimensions.
fn shapes(host: &HostFunction, calls: &[Workload]) -> Vec<(String, usize)> {
    let Some(first) = calls.first() else { return Vec::new() };
    let of = |name: &String| Some((name.clone(), of_tensor(host, first, name)?.shape.len()));
    host.params.iter().filter_map(of).collect()
}

/// Whether every assignment to a name is `name.contiguous()`.
fn keeps_shape(host: &HostFunction, name: &str) -> bool {
    let all = bindings(&host.body, name);
    let is_itself = |stmt: &&Stmt| assigned(stmt, name).and_then(contiguous).and_then(Expr::as_name) == Some(name);
    all.iter().all(is_itself)
}

/// `x` of `x.contiguous()`
fn contiguous(expr: &Expr) -> Option<&Expr> {
    match &expr.as_call()?.func.kind {
        ExprKind::Attribute { value, name, .. } if name == "contiguous" => Some(value),
        _ => None,
    }
}

/// The evaluator of a host function's expressions for one recorded call.
struct Values<'a> {
    host: &'a HostFunction,
    call: &'a Workload,
}

impl Values<'_> {
    fn of(&self, expr: &Expr, depth: usize) -> Option<i64> {
        let depth = depth.checked_sub(1)?;
        match &expr.kind {
            ExprKind::Int(value) => i64::try_from(*value).ok(),
            ExprKind::Name(name) => self.of_name(name, depth),
            ExprKind::Subscript { value, index } => {
                let [at] = index.as_slice() else { return None };
                dimension(self.shape(value)?, at)
            }
            ExprKind::Call(call) => match (&call.func.kind, call.args.as_slice()) {
                (ExprKind::Attribute { value, name, .. }, [at]) if name == "size" => {
                    dimension(&self.tensor(value)?.shape, &at.value)
                }
                (ExprKind::Attribute { value, name, .. }, []) if name == "numel" => {
                    Some(self.tensor(value)?.shape.iter().product())
                }
                _ => None,
            },
            ExprKind::Binary { op, left, right } => {
                let (left, right) = (self.of(left, depth)?, self.of(right, depth)?);
                match op.as_str() {
                    "+" => left.checked_add(right),
                    "-" => left.checked_sub(right),
                    "*" => left.checked_mul(right),
                    "//" if right > 0 => Some(left.div_euclid(right)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn of_name(&self, name: &str, depth: usize) -> Option<i64> {
        let all = bindings(&self.host.body, name);
        let [only] = all.as_slice() else {
            let value = called_with(self.host, self.call, name).filter(|_| all.is_empty())?;
            return if let ArgumentValue::Int(value) = value { Some(*value) } else { None };
        };
        if let Some(value) = assigned(only, name) {
            return self.of(value, depth);
        }
        // `n_rows, n_cols = x.shape`
        let StmtKind::Assign { targets, value: Some(value), .. } = &only.kind else { return None };
        let [Expr { kind: ExprKind::Tuple(names), .. }] = targets.as_slice() else { return None };
        let at = names.iter().position(|one| one.as_name() == Some(name))?;
        self.shape(value).filter(|shape| shape.len() == names.len())?.get(at).copied()
    }

    /// `x.shape`, `x.size()`
    fn shape(&self, expr: &Expr) -> Option<&[i64]> {
        match &expr.kind {
            ExprKind::Attribute { value, name, .. } if name == "shape" => Some(&self.tensor(value)?.shape),
            ExprKind::Call(call) if call.args.is_empty() => match &call.func.kind {
                ExprKind::Attribute { value, name, .. } if name == "size" => Some(&self.tensor(value)?.shape),
                _ => None,
            },
            _ => None,
        }
    }

    fn tensor(&self, expr: &Expr) -> Option<&TensorSpec> {
        of_tensor(self.host, self.call, expr.as_name()?)
    }
}

fn dimension(shape: &[i64], at: &Expr) -> Option<i64> {
    let at = i64::try_from(at.as_int()?).ok()?;
    let at = if at < 0 { at + i64::try_from(shape.len()).ok()? } else { at };
    shape.get(usize::try_from(at).ok()?).copied()
}

impl Size {
    /// Whether the size has, at a place of the function, the value that it has in a launch.
    pub(super) fn is_known(&self, host: &HostFunction, at: usize) -> bool {
        let is_known = |name: &String| match bindings(&host.body, name).as_slice() {
            [] => true,
            _ if host.params.contains(name) => keeps_shape(host, name),
            [only] => only.span.end <= at && host.body.iter().any(|stmt| stmt.span == only.span),
            _ => false,
        };
        host.qualname == self.host && self.names.iter().all(is_known)
    }
}
