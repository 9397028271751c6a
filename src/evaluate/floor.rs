//! The least time that a device needs for a call, by its data sheet.

use crate::protocol::runner::{Exported, LeafValue};

/// Milliseconds that writing the greatest result takes at the least: every element is written once, at the rate of the memory's
/// own clock and width, and one L2 cache of it may stay there. `None` where the device does not tell these.
///
/// Reads are not counted: which part of its inputs a call needs is not known.
pub(super) fn milliseconds(results: &Exported) -> Option<f64> {
    let memory = super::devices::memory()?;
    // Several results may be views of one storage: the greatest alone is certain.
    let results = results.leaves.iter().filter(|leaf| leaf.path.starts_with("result"));
    let written = results.map(|leaf| bytes(&leaf.value)).fold(0.0, f64::max);
    let beyond = written - memory.l2 as f64;
    (beyond > 0.0).then(|| beyond / memory.bytes_per_second * 1000.0)
}

/// Bytes of a tensor that does not share the memory of an argument.
fn bytes(value: &LeafValue) -> f64 {
    match value {
        LeafValue::Tensor { dtype, shape, stride, shares: None, .. } => {
            let distinct =
                shape.iter().zip(stride).map(|(&size, &stride)| if stride == 0 { size.min(1) } else { size });
            let width = match dtype.as_str() {
                "float64" | "int64" | "complex64" => 8.0,
                "complex128" => 16.0,
                "float32" | "int32" | "uint32" => 4.0,
                "float16" | "bfloat16" | "int16" | "uint16" => 2.0,
                _ => 1.0,
            };
            distinct.product::<i64>() as f64 * width
        }
        _ => 0.0,
    }
}
