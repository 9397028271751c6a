//! The parser of spec comments, which describe calls that were not recorded: `# warpsmith: workload entry=f
//! x=f16[4096,4096] n=4096`. With `entry=f[cdiv(n,BLOCK)]` the comment describes the launch of a kernel.

use std::path::Path;

use model::syntax::Span;
use protocol::sizes::contiguous;
use protocol::{ArgumentValue, GridExpr, LaunchRecord, TensorContents, TensorSpec, Workload, WorkloadSource, is_float};

use super::signature::{LaunchParam, parameters};

/// The text after the `#` that marks a spec comment.
const MARK: &str = "warpsmith: workload";

/// Element types as comments write them, and their names in torch.
const TYPES: &[(&str, &str)] = &[
    ("f16", "float16"),
    ("bf16", "bfloat16"),
    ("f32", "float32"),
    ("f64", "float64"),
    ("f8e4m3", "float8_e4m3fn"),
    ("f8e5m2", "float8_e5m2"),
    ("i8", "int8"),
    ("i16", "int16"),
    ("i32", "int32"),
    ("i64", "int64"),
    ("u8", "uint8"),
    ("bool", "bool"),
    ("c64", "complex64"),
];

/// The calls that the comments of a file describe, in the order of the file.
///
/// # Errors
/// Returns a message with the line of the first comment that cannot be parsed.
pub fn workloads_of_comments(file: &Path, text: &str) -> Result<Vec<Workload>, String> {
    Ok(comments(file, text)?.into_iter().map(|(_, workload)| workload).collect())
}

/// The calls of [`workloads_of_comments`] with the spans of their comments, without surrounding whitespace.
pub(super) fn comments(file: &Path, text: &str) -> Result<Vec<(Span, Workload)>, String> {
    let (mut found, mut start) = (Vec::new(), 0);
    for (at, line) in text.split_inclusive('\n').enumerate() {
        let begin = start + line.len() - line.trim_start().len();
        start += line.len();
        let line = line.trim();
        let Some(body) = line.strip_prefix('#').and_then(|rest| rest.trim_start().strip_prefix(MARK)) else {
            continue;
        };
        let place = |error| format!("{}:{}: {error}, in `{line}`", file.display(), at + 1);
        found.push((Span::new(begin, begin + line.len()), workload(file, text, body).map_err(place)?));
    }
    Ok(found)
}

/// The place and text of the comment that describes a call of the file; `None` for a call without such a comment.
#[must_use]
pub fn place_of_comment(workload: &Workload, text: &str) -> Option<String> {
    let (place, _) = comments(&workload.file, text).ok()?.into_iter().find(|(_, one)| one == workload)?;
    let line = 1 + text[..place.start].matches('\n').count();
    let name = workload.file.file_name().unwrap_or_default().to_string_lossy();
    Some(format!("{name}:{line}: `{}`", &text[place.start..place.end]))
}

/// The keys of a comment that are not arguments. If the function has a parameter of that name, the key is an argument
/// after `entry=`.
const OURS: &[&str] = &["entry", "count", "gradients"];

fn workload(file: &Path, text: &str, body: &str) -> Result<Workload, String> {
    let mut workload =
        Workload { source: WorkloadSource::Comment, file: file.to_owned(), count: 1, ..Workload::default() };
    let mut tensors = 0;
    let mut params = None;
    for pair in pairs(body)? {
        let Some((name, given)) = pair.split_once('=') else {
            return Err(format!("`{pair}` does not have the form `NAME=VALUE`"));
        };
        let is_ours = OURS.contains(&name) && {
            let takes = |params: &Option<Vec<LaunchParam>>| params.iter().flatten().any(|param| param.name == name);
            workload.entry.is_empty() || !takes(params.get_or_insert_with(|| parameters_of(text, &workload.entry)))
        };
        match name {
            "entry" if is_ours && !workload.entry.is_empty() => return Err("`entry` is given twice".to_owned()),
            "entry" if is_ours => given.clone_into(&mut workload.entry),
            "count" if is_ours => {
                workload.count = given.parse().map_err(|_| format!("`count={given}` is not a number of calls"))?;
            }
            "gradients" if is_ours => {
                workload.gradients = boolean(given).ok_or("`gradients` is `True` or `False`")?;
            }
            _ if !is_name(name) => return Err(format!("`{name}` is not a parameter name")),
            _ if workload.kwargs.iter().any(|(known, _)| known == name) => {
                return Err(format!("`{name}` is given twice"));
            }
            _ => {
                let value = value(given, &mut tensors).map_err(|why| format!("`{name}={given}`: {why}"))?;
                workload.kwargs.push((name.to_owned(), value));
            }
        }
    }
    if let Some((kernel, grid)) = workload.entry.split_once('[') {
        let (kernel, grid) = (kernel.to_owned(), grid.to_owned());
        launch(&mut workload, kernel, &grid)?;
        if let Some(params) = parameters(text, &workload.entry) {
            let is_constant = |name: &String| params.iter().all(|param| param.name != *name || param.is_constant);
            let names = workload.kwargs.iter().map(|(name, _)| name);
            workload.constants = names.filter(|name| is_constant(name)).cloned().collect();
        }
    }
    if workload.entry.is_empty() {
        return Err("it names no function: `entry=NAME` is missing".to_owned());
    }
    if workload.gradients {
        workload.kwargs.iter_mut().for_each(|(_, value)| want_gradient(value));
    }
    if workload.entry.ends_with(".apply") {
        // `apply` of an autograd function takes no keyword arguments.
        workload.args = std::mem::take(&mut workload.kwargs).into_iter().map(|(_, value)| value).collect();
    }
    Ok(workload)
}

fn parameters_of(text: &str, entry: &str) -> Option<Vec<LaunchParam>> {
    parameters(text, entry.split('[').next().unwrap_or(entry))
}

/// `entry=f[4,cdiv(n,BLOCK)]`: the kernel `f` is launched with this grid.
fn launch(workload: &mut Workload, kernel: String, grid: &str) -> Result<(), String> {
    let inner = grid.strip_suffix(']').ok_or("there must be nothing after the grid of a launch")?;
    let grid: Vec<String> = items(inner).into_iter().map(str::to_owned).collect();
    if !(1..=3).contains(&grid.len()) {
        return Err(format!("a grid has one to three numbers, not {}", grid.len()));
    }
    if workload.gradients {
        return Err("a launch has no gradients".to_owned());
    }
    let parsed = grid.iter().map(|one| GridExpr::parse(one)).collect::<Result<Vec<_>, _>>()?;
    let of = |wanted: &str| {
        workload.kwargs.iter().find_map(|(name, value)| match value {
            ArgumentValue::Int(value) if name == wanted => Some(*value),
            _ => None,
        })
    };
    // Constants that an autotuner chooses have no value here.
    let numbers = parsed.iter().map(|one| one.value(&of)).collect::<Option<Vec<_>>>();
    workload.launches =
        vec![LaunchRecord { kernel: kernel.clone(), grid: numbers.unwrap_or_default(), ..LaunchRecord::default() }];
    if !parsed.iter().all(|one| matches!(one, GridExpr::Number(_))) {
        workload.grid = grid;
    }
    (workload.source, workload.entry) = (WorkloadSource::Launch, kernel);
    Ok(())
}

/// Splits a text at whitespace outside of brackets and quotes.
fn pairs(body: &str) -> Result<Vec<String>, String> {
    let (mut pairs, mut pair) = (Vec::new(), String::new());
    let (mut depth, mut quote) = (0_usize, None);
    for c in body.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None => match c {
                '"' | '\'' => quote = Some(c),
                '[' | '(' => depth += 1,
                ']' | ')' => depth = depth.checked_sub(1).ok_or_else(|| format!("`{c}` closes nothing"))?,
                _ if c.is_whitespace() && depth == 0 => {
                    if !pair.is_empty() {
                        pairs.push(std::mem::take(&mut pair));
                    }
                    continue;
                }
                _ => {}
            },
        }
        if quote.is_some() || !c.is_whitespace() {
            pair.push(c);
        }
    }
    if depth > 0 || quote.is_some() {
        return Err(format!("`{pair}` has no end"));
    }
    if !pair.is_empty() {
        pairs.push(pair);
    }
    Ok(pairs)
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c == '_' || c.is_alphanumeric())
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "True" => Some(true),
        "False" => Some(false),
        _ => None,
    }
}

fn value(text: &str, tensors: &mut usize) -> Result<ArgumentValue, String> {
    if text == "None" {
        return Ok(ArgumentValue::None);
    }
    if let Some(value) = boolean(text) {
        return Ok(ArgumentValue::Bool(value));
    }
    if let Ok(value) = text.parse() {
        return Ok(ArgumentValue::Int(value));
    }
    let is_number = text.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '.')) || text == "inf";
    if is_number && let Ok(value) = text.parse() {
        return Ok(ArgumentValue::Float(value));
    }
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return Ok(ArgumentValue::Str(inner.to_owned()));
        }
    }
    if let Some(dtype) = text.strip_prefix("torch.") {
        return Ok(ArgumentValue::Dtype(dtype.to_owned()));
    }
    for (open, close, make) in
        [('[', ']', ArgumentValue::List as fn(Vec<ArgumentValue>) -> ArgumentValue), ('(', ')', ArgumentValue::Tuple)]
    {
        if let Some(inner) = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close)) {
            return Ok(make(items(inner).into_iter().map(|item| value(item, tensors)).collect::<Result<_, _>>()?));
        }
    }
    tensor(text, tensors).map(ArgumentValue::Tensor)
}

/// Splits a text at commas outside of brackets.
fn items(text: &str) -> Vec<&str> {
    let mut depth = 0_i64;
    let parts = text.split(|c: char| {
        depth += i64::from(matches!(c, '[' | '(')) - i64::from(matches!(c, ']' | ')'));
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// Parses a tensor: `f16[4096,4096]`, `i64[128]<4096`, `f32[4096:2,64]`, `f32[8]@cpu`.
fn tensor(text: &str, tensors: &mut usize) -> Result<TensorSpec, String> {
    let unknown = || {
        let types: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
        format!(
            "neither a value (`4096`, `1e-5`, `True`, `None`, `\"text\"`, `torch.float16`) nor a tensor (`f16[64,128]`, with one of {})",
            types.join(", ")
        )
    };
    let (name, rest) = text.split_once('[').ok_or_else(unknown)?;
    let (_, dtype) = TYPES.iter().find(|(short, long)| *short == name || *long == name).ok_or_else(unknown)?;
    let (sizes, rest) = rest.split_once(']').ok_or_else(unknown)?;
    let (rest, device) = rest.split_once('@').unwrap_or((rest, "cuda"));
    let (mut shape, mut steps) = (Vec::new(), Vec::new());
    for dim in sizes.split(',').filter(|dim| !dim.is_empty()) {
        let (size, step) = dim.split_once(':').unwrap_or((dim, "1"));
        let number = |text: &str| text.parse().ok().filter(|&number: &i64| number >= 0);
        shape.push(number(size).ok_or_else(|| format!("`{size}` is not a size"))?);
        steps.push(number(step).filter(|&step| step > 0).ok_or_else(|| format!("`{step}` is not a step"))?);
    }
    // A size with step 2 is every second row of a tensor twice as long.
    let whole: Vec<i64> = shape.iter().zip(&steps).map(|(size, step)| size * step).collect();
    let stride = contiguous(&whole).iter().zip(&steps).map(|(stride, step)| stride * step).collect();
    let is_continuous = is_float(dtype) || dtype.starts_with("complex");
    let bound = match rest.strip_prefix('<') {
        Some(bound) => Some(bound.parse::<i64>().map_err(|_| format!("`{bound}` is not a bound"))?),
        None if rest.is_empty() => None,
        None => return Err(format!("`{rest}` after the sizes; only `<BOUND` or `@cpu` is allowed there")),
    };
    let data = match bound {
        Some(_) if is_continuous => return Err("a bound is for integers".to_owned()),
        Some(bound) if bound < 1 => return Err("a bound is above 0".to_owned()),
        Some(bound) => TensorContents::range(0, bound - 1),
        None if is_continuous => TensorContents::normal(0.0, 1.0, -6.0, 6.0),
        None if *dtype == "bool" => TensorContents::Range { low: 0, high: 1, sorted: false, zeros: 0.5 },
        None => TensorContents::range(0, 1),
    };
    *tensors += 1;
    let at = *tensors - 1;
    let (dtype, device) = ((*dtype).to_owned(), device.to_owned());
    Ok(TensorSpec { id: at, storage: at, shape, stride, dtype, device, data, ..TensorSpec::default() })
}

fn want_gradient(value: &mut ArgumentValue) {
    match value {
        ArgumentValue::Tensor(spec) => {
            spec.requires_grad = spec.dtype.contains("float") || spec.dtype.contains("complex")
        }
        ArgumentValue::List(items) | ArgumentValue::Tuple(items) => items.iter_mut().for_each(want_gradient),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Vec<Workload>, String> {
        workloads_of_comments(Path::new("/f.py"), &format!("import torch\n{line}\n"))
    }

    fn spec(value: &ArgumentValue) -> &TensorSpec {
        let ArgumentValue::Tensor(spec) = value else { panic!("{value:?}") };
        spec
    }

    #[test]
    fn each_kind_of_value_is_read() {
        let found = read(
            r#"# warpsmith: workload entry=f count=7 x=f16[4096, 4096] n=4096 eps=1e-5 y=i64[128]<4096 z=f32[4096:2,64] s="a b" out=None on=True t=torch.bfloat16 xs=[f32[2], 3] w=bf16[]@cpu"#,
        );
        let workload = found.unwrap().remove(0);
        assert_eq!((workload.entry.as_str(), workload.count, workload.source), ("f", 7, WorkloadSource::Comment));
        let value = |name: &str| &workload.kwargs.iter().find(|(known, _)| known == name).unwrap().1;
        assert_eq!(
            (spec(value("x")).shape.as_slice(), spec(value("x")).stride.as_slice()),
            (&[4096; 2][..], &[4096, 1][..])
        );
        assert_eq!(spec(value("y")).data, TensorContents::range(0, 4095));
        assert_eq!(
            (spec(value("z")).shape.as_slice(), spec(value("z")).stride.as_slice()),
            (&[4096, 64][..], &[128, 1][..])
        );
        assert_eq!((spec(value("w")).dtype.as_str(), spec(value("w")).device.as_str()), ("bfloat16", "cpu"));
        assert_eq!(value("n"), &ArgumentValue::Int(4096));
        assert_eq!(value("eps"), &ArgumentValue::Float(1e-5));
        assert_eq!(value("s"), &ArgumentValue::Str("a b".to_owned()));
        assert_eq!((value("out"), value("on")), (&ArgumentValue::None, &ArgumentValue::Bool(true)));
        assert_eq!(value("t"), &ArgumentValue::Dtype("bfloat16".to_owned()));
        assert!(
            matches!(value("xs"), ArgumentValue::List(items) if items.len() == 2 && items[1] == ArgumentValue::Int(3))
        );
        // Each tensor has memory of its own.
        let storages: Vec<usize> = workload.specs().iter().map(|spec| spec.storage).collect();
        assert_eq!(storages, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn several_comments_are_several_calls_and_others_are_none() {
        let text = "#warpsmith: workload entry=f n=1\n# warpsmith: ignore[M001]\n    # warpsmith: workload entry=F.apply gradients=True x=f32[8] i=i32[8]\n";
        let found = read(text).unwrap();
        assert_eq!(found.len(), 2);
        assert!(found[1].gradients && found[1].kwargs.is_empty());
        assert!(spec(&found[1].args[0]).requires_grad && !spec(&found[1].args[1]).requires_grad);
    }

    #[test]
    fn parameters_may_be_named_like_keys_of_the_comment() {
        let call = |line: &str| {
            let text = format!(
                "# warpsmith: workload {line}\n@triton.jit\ndef k(x, count, entry, gradients): ...\ndef f(x): ...\n"
            );
            Ok::<_, String>(workloads_of_comments(Path::new("/f.py"), &text)?.remove(0))
        };
        let given = call("count=3 entry=k[cdiv(count,4)] x=f16[8] count=8 entry=2 gradients=i32[1]").unwrap();
        let names: Vec<&str> = given.kwargs.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((given.count, given.entry.as_str(), names), (3, "k", vec!["x", "count", "entry", "gradients"]));
        assert_eq!((given.launches[0].grid.as_slice(), given.gradients), (&[2][..], false));
        assert_eq!(call("entry=k x=f16[8] count=8").unwrap().count, 1);
        // For other functions it is always a key of the comment, at any position.
        assert_eq!(call("entry=f x=f16[8] count=8").unwrap().count, 8);
        assert_eq!(call("entry=imported.f x=f16[8] count=8").unwrap().count, 8);
        assert!(call("entry=f x=f16[8] entry=g").unwrap_err().contains("`entry` is given twice"));
        assert!(call("entry=k count=1 count=2").unwrap_err().contains("`count` is given twice"));
    }

    #[test]
    fn a_kernel_with_a_grid_is_launched() {
        let call = |entry: &str| read(&format!("# warpsmith: workload entry={entry} x=f16[4096] n=4096 BLOCK=1024"));
        let one = |entry: &str| call(entry).unwrap().remove(0);
        let numbers = one("k[4, 1]");
        assert_eq!((numbers.source, numbers.entry.as_str()), (WorkloadSource::Launch, "k"));
        assert_eq!((numbers.launches[0].grid.as_slice(), numbers.is_resizable()), (&[4, 1][..], false));
        let expressions = one("k[cdiv(n, BLOCK), 2]");
        assert_eq!((expressions.launches[0].grid.as_slice(), expressions.is_resizable()), (&[4, 2][..], true));
        assert_eq!(expressions.grid, ["cdiv(n,BLOCK)", "2"]);
        assert_eq!(one("k[cdiv(n,CHOSEN)]").launches[0].grid, [0_i64; 0]);
        // A compile-time constant does not change with a size that it equals.
        let text = "# warpsmith: workload entry=k[1] x=f16[8] n=8 BLOCK=8 OTHER_BLOCK=8 num_warps=8\ndef k(x, n, OTHER_BLOCK, BLOCK : tl.constexpr = 8): ...\n";
        assert_eq!(workloads_of_comments(Path::new("/f.py"), text).unwrap()[0].constants, ["BLOCK", "num_warps"]);
        for (entry, words) in [
            ("k[]", "not 0"),
            ("k[1,2,3,4]", "not 4"),
            ("k[n/2]", "`/2`"),
            ("k[1]x", "after the grid"),
            ("[1]", "missing"),
        ] {
            let error = call(entry).unwrap_err();
            assert!(error.contains(words), "{entry}: {error}");
        }
        assert!(call("k[1] gradients=True").unwrap_err().contains("gradients"));
    }

    #[test]
    fn errors_in_workload_comments_are_reported_with_their_line() {
        for (line, expected) in [
            ("x=f16[8]", "`entry=NAME` is missing"),
            ("entry=f x", "`x` does not have the form `NAME=VALUE`"),
            ("entry=f x=f12[8]", "neither a value"),
            ("entry=f x=f16[8", "has no end"),
            ("entry=f x=f16[a]", "`a` is not a size"),
            ("entry=f x=f16[8:0]", "`0` is not a step"),
            ("entry=f x=f16[8]<3", "a bound is for integers"),
            ("entry=f x=i64[8]>3", "`>3` after the sizes"),
            ("entry=f count=many", "`count=many`"),
            ("entry=f x=1 x=2", "`x` is given twice"),
            ("entry=f 2x=1", "not a parameter name"),
        ] {
            let error = read(&format!("# warpsmith: workload {line}")).unwrap_err();
            assert!(error.contains(expected) && error.starts_with("/f.py:2: "), "{line}: {error}");
        }
    }
}
