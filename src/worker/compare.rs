//! Whether two results are the same up to the original's own rounding.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

/// A difference may be this many times the root mean square by which the original's output moves when its inputs move
/// by their own rounding error.
const NOISE_FACTOR: f64 = 10.0;

/// And this many units in the last place of the output.
const ULPS: f64 = 2.0;

/// A value inside a result, with the way to it.
pub(super) struct Leaf<'py> {
    path: String,
    value: Bound<'py, PyAny>,
}

/// The tensors and scalars of a result, depth first.
pub(super) fn leaves<'py>(value: &Bound<'py, PyAny>, path: &str) -> PyResult<Vec<Leaf<'py>>> {
    let mut out = Vec::new();
    collect(value, path.to_owned(), &mut out)?;
    Ok(out)
}

fn collect<'py>(value: &Bound<'py, PyAny>, path: String, out: &mut Vec<Leaf<'py>>) -> PyResult<()> {
    if value.is_instance_of::<PyTuple>() || value.is_instance_of::<PyList>() {
        for (at, item) in value.try_iter()?.enumerate() {
            collect(&item?, format!("{path}[{at}]"), out)?;
        }
    } else if let Ok(dict) = value.cast::<PyDict>() {
        for (key, item) in dict {
            collect(&item, format!("{path}[{}]", key.repr()?), out)?;
        }
    } else {
        out.push(Leaf { path, value: value.clone() });
    }
    Ok(())
}

fn is_tensor(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    value.is_instance(&value.py().import("torch")?.getattr("Tensor")?)
}

fn is_float(tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
    tensor.call_method0("is_floating_point")?.extract()
}

/// Wide enough that the comparison itself does not round.
fn widened<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let size: i64 = tensor.call_method0("element_size")?.extract()?;
    let detached = tensor.call_method0("detach")?;
    detached.call_method0(if size <= 2 { "float" } else { "double" })
}

/// Per leaf, the root mean square of the finite differences between two runs of the original.
pub(super) fn noise(before: &[Leaf<'_>], jittered: &[Leaf<'_>]) -> PyResult<Vec<f64>> {
    let one = |(a, b): (&Leaf<'_>, &Leaf<'_>)| -> PyResult<f64> {
        if !is_tensor(&a.value)? || !is_float(&a.value)? || a.value.call_method0("numel")?.extract::<i64>()? == 0 {
            return Ok(0.0);
        }
        let gap = widened(&b.value)?.call_method1("sub", (widened(&a.value)?,))?;
        let finite = gap.call_method1("nan_to_num", (0.0, 0.0, 0.0))?;
        finite.call_method0("square")?.call_method0("mean")?.call_method0("sqrt")?.call_method0("item")?.extract()
    };
    before.iter().zip(jittered).map(one).collect()
}

/// `None` when the candidate's leaves equal the original's; else which differs, where and by how much.
pub(super) fn difference(original: &[Leaf<'_>], candidate: &[Leaf<'_>], noise: &[f64]) -> PyResult<Option<String>> {
    if original.len() != candidate.len() {
        return Ok(Some(format!("{} values instead of {}", candidate.len(), original.len())));
    }
    for (at, (original, candidate)) in original.iter().zip(candidate).enumerate() {
        let noise = noise.get(at).copied().unwrap_or(0.0);
        if let Some(what) = leaf_difference(&original.value, &candidate.value, noise)? {
            return Ok(Some(format!("{}: {what}", candidate.path)));
        }
    }
    Ok(None)
}

fn leaf_difference(original: &Bound<'_, PyAny>, candidate: &Bound<'_, PyAny>, noise: f64) -> PyResult<Option<String>> {
    if !original.get_type().is(candidate.get_type()) {
        return Ok(Some(format!("a {} instead of a {}", candidate.get_type().name()?, original.get_type().name()?)));
    }
    if !is_tensor(original)? {
        let same = original.eq(candidate).unwrap_or(true);
        return Ok((!same).then(|| format!("{candidate} instead of {original}")));
    }
    for trait_ in ["shape", "dtype", "device"] {
        let (a, b) = (original.getattr(trait_)?, candidate.getattr(trait_)?);
        if !a.eq(&b)? {
            return Ok(Some(format!("{trait_} {b} instead of {a}")));
        }
    }
    let strides = (original.call_method0("stride")?, candidate.call_method0("stride")?);
    if !strides.0.eq(&strides.1)? {
        return Ok(Some(format!("strides {} instead of {}", strides.1, strides.0)));
    }
    if original.call_method0("numel")?.extract::<i64>()? == 0 {
        return Ok(None);
    }
    if is_float(original)? {
        float_difference(original, candidate, noise)
    } else {
        exact_difference(original, candidate)
    }
}

fn exact_difference(original: &Bound<'_, PyAny>, candidate: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let wrong = original.call_method1("ne", (candidate,))?;
    let count: i64 = wrong.call_method0("sum")?.call_method0("item")?.extract()?;
    Ok((count > 0).then(|| format!("{count} elements differ (must be equal)")))
}

fn float_difference(original: &Bound<'_, PyAny>, candidate: &Bound<'_, PyAny>, noise: f64) -> PyResult<Option<String>> {
    let torch = original.py().import("torch")?;
    let eps: f64 = torch.call_method1("finfo", (original.getattr("dtype")?,))?.getattr("eps")?.extract()?;
    let tiny: f64 = torch.call_method1("finfo", (original.getattr("dtype")?,))?.getattr("tiny")?.extract()?;
    let (a, b) = (widened(original)?, widened(candidate)?);
    let odd =
        |x: &Bound<'_, PyAny>| -> PyResult<_> { Ok(x.call_method0("isfinite")?.call_method0("logical_not")?.unbind()) };
    let (odd_a, odd_b) = (odd(&a)?.into_bound(a.py()), odd(&b)?.into_bound(a.py()));
    // NaN where NaN, the same infinity where infinite.
    let both_nan = a.call_method0("isnan")?.call_method1("logical_and", (b.call_method0("isnan")?,))?;
    let same = a.call_method1("eq", (&b,))?.call_method1("logical_or", (both_nan,))?;
    let odd_wrong = odd_a
        .call_method1("logical_or", (odd_b,))?
        .call_method1("logical_and", (same.call_method0("logical_not")?,))?;
    let odd_count: i64 = odd_wrong.call_method0("sum")?.call_method0("item")?.extract()?;
    if odd_count > 0 {
        return Ok(Some(format!("{odd_count} elements are NaN, infinite or unwritten on one side only")));
    }
    let gap = b.call_method1("sub", (&a,))?.call_method0("abs")?.call_method1("nan_to_num", (0.0, 0.0, 0.0))?;
    let bound = a
        .call_method0("abs")?
        .call_method1("mul", (ULPS * eps,))?
        .call_method1("add", (NOISE_FACTOR * noise + tiny,))?
        .call_method1("nan_to_num", (0.0, 0.0, 0.0))?;
    let wrong = gap.call_method1("gt", (&bound,))?;
    let count: i64 = wrong.call_method0("sum")?.call_method0("item")?.extract()?;
    if count == 0 {
        return Ok(None);
    }
    let excess = gap.call_method1("sub", (bound,))?.call_method0("flatten")?;
    let worst: i64 = excess.call_method0("argmax")?.call_method0("item")?.extract()?;
    let at = |x: &Bound<'_, PyAny>| -> PyResult<f64> {
        x.call_method0("flatten")?.get_item(worst)?.call_method0("item")?.extract()
    };
    Ok(Some(format!(
        "{count} elements differ by more than rounding; worst {} instead of {} at flat index {worst} (allowed {:.3e})",
        at(&b)?,
        at(&a)?,
        at(&a)?.abs() * ULPS * eps + NOISE_FACTOR * noise
    )))
}

/// Whether two tensors hold the same bits' worth of values, NaN equal to NaN.
pub(super) fn identical(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<bool> {
    let equal = a.call_method1("eq", (b,))?;
    let equal = if is_float(a)? {
        let both_nan = a.call_method0("isnan")?.call_method1("logical_and", (b.call_method0("isnan")?,))?;
        equal.call_method1("logical_or", (both_nan,))?
    } else {
        equal
    };
    equal.call_method0("all")?.call_method0("item")?.extract()
}
