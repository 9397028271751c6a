//! Short texts of calls and values, for lists.

use protocol::{ArgumentValue, Workload};

/// The arguments of a call as short text: `float16[4096, 4096], n=4096`.
#[must_use]
pub fn shapes(workload: &Workload) -> String {
    let positional = workload.args.iter().map(short);
    let named = workload.kwargs.iter().map(|(name, value)| format!("{name}={}", short(value)));
    positional.chain(named).collect::<Vec<_>>().join(", ")
}

/// A value as short text: `float16[4096, 4096]`, `None`, `Color.RED`.
#[must_use]
pub fn short(value: &ArgumentValue) -> String {
    let list = |items: &mut dyn Iterator<Item = &ArgumentValue>| items.map(short).collect::<Vec<_>>().join(", ");
    match value {
        ArgumentValue::None => "None".to_owned(),
        ArgumentValue::Bool(true) => "True".to_owned(),
        ArgumentValue::Bool(false) => "False".to_owned(),
        ArgumentValue::Int(value) => value.to_string(),
        ArgumentValue::Float(value) => format!("{value:?}"),
        ArgumentValue::Complex(parts) => format!("complex{parts:?}"),
        ArgumentValue::Str(text) => format!("{text:?}"),
        ArgumentValue::Dtype(name)
        | ArgumentValue::Pointer(name)
        | ArgumentValue::Device(name)
        | ArgumentValue::Opaque(name) => name.clone(),
        ArgumentValue::Tensor(spec) => {
            let is_dense = spec.stride == protocol::sizes::contiguous(&spec.shape);
            let stride = if is_dense { String::new() } else { format!(" by {:?}", spec.stride) };
            let shared = if spec.offset == 0 { String::new() } else { format!(" from {}", spec.offset) };
            format!("{}{:?}{stride}{shared}", spec.dtype, spec.shape)
        }
        ArgumentValue::List(_) => format!("[{}]", list(&mut value.inner())),
        ArgumentValue::Tuple(_) => format!("({})", list(&mut value.inner())),
        ArgumentValue::Set(_) => format!("{{{}}}", list(&mut value.inner())),
        ArgumentValue::Slice(_) => format!("slice({})", list(&mut value.inner())),
        ArgumentValue::Dict(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| format!("{}: {}", short(key), short(value)));
            format!("{{{}}}", pairs.collect::<Vec<_>>().join(", "))
        }
        ArgumentValue::Global(what) => what.path.clone(),
        ArgumentValue::NamedTuple { class, .. } | ArgumentValue::Made { class, .. } => {
            format!("{}({})", class.path, list(&mut value.inner()))
        }
        ArgumentValue::Object { class, state } => {
            let state = state.iter().filter(|(name, _)| !name.starts_with("__"));
            let state = state.map(|(name, value)| format!("{name}={}", short(value)));
            format!("{}({})", class.path, state.collect::<Vec<_>>().join(", "))
        }
    }
}
