//! Short texts of calls and values, for lists.

use protocol::{Value, Workload};

/// The arguments of a call as short text: `float16[4096, 4096], n=4096`.
#[must_use]
pub fn shapes(workload: &Workload) -> String {
    let positional = workload.args.iter().map(short);
    let named = workload.kwargs.iter().map(|(name, value)| format!("{name}={}", short(value)));
    positional.chain(named).collect::<Vec<_>>().join(", ")
}

/// A value as short text: `float16[4096, 4096]`, `None`, `Color.RED`.
#[must_use]
pub fn short(value: &Value) -> String {
    let list = |items: &mut dyn Iterator<Item = &Value>| items.map(short).collect::<Vec<_>>().join(", ");
    match value {
        Value::None => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Complex(parts) => format!("complex{parts:?}"),
        Value::Str(text) => format!("{text:?}"),
        Value::Dtype(name) | Value::Pointer(name) | Value::Device(name) | Value::Opaque(name) => name.clone(),
        Value::Tensor(spec) => {
            let is_dense = spec.stride == protocol::sizes::contiguous(&spec.shape);
            let stride = if is_dense { String::new() } else { format!(" by {:?}", spec.stride) };
            let shared = if spec.offset == 0 { String::new() } else { format!(" from {}", spec.offset) };
            format!("{}{:?}{stride}{shared}", spec.dtype, spec.shape)
        }
        Value::List(_) => format!("[{}]", list(&mut value.inner())),
        Value::Tuple(_) => format!("({})", list(&mut value.inner())),
        Value::Set(_) => format!("{{{}}}", list(&mut value.inner())),
        Value::Slice(_) => format!("slice({})", list(&mut value.inner())),
        Value::Dict(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{}: {}", short(key), short(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        Value::Global(what) => what.path.clone(),
        Value::NamedTuple { class, .. } | Value::Made { class, .. } => {
            format!("{}({})", class.path, list(&mut value.inner()))
        }
        Value::Object { class, state } => {
            let state = state.iter().filter(|(name, _)| !name.starts_with("__"));
            let state = state.map(|(name, value)| format!("{name}={}", short(value)));
            format!("{}({})", class.path, state.collect::<Vec<_>>().join(", "))
        }
    }
}
