//! The parts of results, read without calling their methods, so that no code of the user runs that could compute
//! results at this time.

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFrozenSet, PyList, PySet, PySlice, PyString, PyTuple, PyType};

use protocol::runner::LeafValue;

use super::arrays::Arrays;
use super::classes::{ClassHierarchy, InstanceState, TypeInspector, dictionary, is_fixed};
use super::runner::within;

/// The nesting depth beyond which nothing is read.
const DEEPEST: usize = 64;
/// The most values that are read from the results of a call.
const MOST: usize = 100_000;
/// The methods that read dictionaries, in addition to those of all containers.
const DICT_READERS: &[&str] = &["__missing__", "get", "items", "keys", "values"];
/// The methods that read tensors of subclasses.
const TENSOR_READERS: &[&str] = &["__array__", "__dlpack__", "__torch_function__", "data_ptr", DISPATCH];
/// A tensor with this method need not have memory.
const DISPATCH: &str = "__torch_dispatch__";
/// Types whose text, printed by C code, contains their whole value: module and name.
const PLAIN: &[(&str, &[&str])] = &[
    ("builtins", &["bool", "bytearray", "bytes", "complex", "float", "int", "range", "str"]),
    ("types", &["EllipsisType", "NoneType", "NotImplementedType"]),
    ("array", &["array"]),
    ("datetime", &["date", "timedelta"]),
    ("decimal", &["Decimal"]),
    ("torch", &["device", "dtype", "layout", "memory_format"]),
];

/// A value inside results, or a container.
pub(super) struct ResultPart<'py> {
    /// The path to the value.
    pub(super) path: String,
    pub(super) value: PartValue<'py>,
}

pub(super) enum PartValue<'py> {
    /// A tensor whose class adds no behaviour.
    Tensor { class: String, tensor: Bound<'py, PyAny> },
    /// An array or a scalar of numpy's own classes.
    Array(Bound<'py, PyAny>),
    /// A value without elements.
    Other(LeafValue),
}

/// A reader of results, with functions that were looked up before the file was loaded.
pub(super) struct ResultReader<'py> {
    classes: TypeInspector<'py>,
    tensor: Bound<'py, PyAny>,
    /// Tensor classes, with their names.
    tensors: Vec<(String, Bound<'py, PyAny>)>,
    /// `torch.Tensor.as_subclass`, and the context manager that keeps subclasses from being called meanwhile.
    as_subclass: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    plain: Vec<(String, Bound<'py, PyAny>)>,
    /// Conversions from subclasses of numbers and strings to the base type, by the base type.
    inner: Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    arrays: Option<Arrays<'py>>,
    enumeration: Bound<'py, PyAny>,
    namespace: Bound<'py, PyAny>,
    deque: Bound<'py, PyAny>,
    items_of_deque: Bound<'py, PyAny>,
    length_of_deque: Bound<'py, PyAny>,
    field: Bound<'py, PyAny>,
    field_kind: Bound<'py, PyAny>,
}

/// The parts that were read, and the objects that are being read, with the path to each.
#[derive(Default)]
struct Walk<'py> {
    all: Vec<ResultPart<'py>>,
    open: Vec<(usize, String)>,
}

/// A container: its kind, the value that represents it, and its items with their paths.
struct Opened<'py> {
    class: String,
    stands_for: Option<String>,
    items: Vec<(String, Bound<'py, PyAny>)>,
}

/// Why a value cannot be read.
type Closed = &'static str;

impl<'py> ResultReader<'py> {
    pub(super) fn new(py: Python<'py>, tensor: Bound<'py, PyAny>, has_torch: bool) -> PyResult<Self> {
        let builtins = py.import("builtins")?;
        let (dataclasses, collections) = (py.import("dataclasses")?, py.import("collections")?);
        let name = |class: &Bound<'py, PyAny>| -> PyResult<String> {
            Ok(class.cast::<PyType>()?.fully_qualified_name()?.to_string())
        };
        let mut plain = Vec::new();
        for (module, names) in PLAIN.iter().filter(|(module, _)| has_torch || *module != "torch") {
            let module = py.import(*module)?;
            for known in *names {
                let class = module.getattr(*known)?;
                plain.push((name(&class)?, class));
            }
        }
        let mut inner = Vec::new();
        for (of, by) in [("int", "__int__"), ("float", "__float__"), ("str", "__str__"), ("complex", "__pos__")] {
            let class = builtins.getattr(of)?;
            inner.push((class.clone(), class.getattr(by)?));
        }
        let mut tensors = vec![(name(&tensor)?, tensor.clone())];
        let (mut as_subclass, mut arrays) = (None, None);
        if has_torch {
            let parameter = py.import("torch.nn")?.getattr("Parameter")?;
            tensors.push((name(&parameter)?, parameter));
            let quietly = py.import("torch._C")?.getattr("DisableTorchFunctionSubclass")?;
            as_subclass = Some((tensor.getattr("as_subclass")?, quietly));
            // Torch works without numpy.
            arrays = Arrays::new(py).ok();
        }
        let deque = collections.getattr("deque")?;
        let of_deque = deque.getattr("__dict__")?;
        Ok(Self {
            classes: TypeInspector::new(py)?,
            tensor,
            tensors,
            as_subclass,
            plain,
            inner,
            arrays,
            enumeration: py.import("enum")?.getattr("Enum")?,
            namespace: py.import("types")?.getattr("SimpleNamespace")?,
            items_of_deque: of_deque.get_item("__iter__")?,
            length_of_deque: of_deque.get_item("maxlen")?,
            deque,
            field: dataclasses.getattr("Field")?,
            field_kind: dataclasses.getattr("_FIELD")?,
        })
    }

    pub(super) fn arrays(&self) -> Option<&Arrays<'py>> {
        self.arrays.as_ref()
    }

    /// Reads values with their contents, depth first, each with its path.
    pub(super) fn read(
        &self,
        values: impl IntoIterator<Item = (String, Bound<'py, PyAny>)>,
    ) -> PyResult<Vec<ResultPart<'py>>> {
        let mut walk = Walk::default();
        for (path, value) in values {
            self.add(&value, path, &mut walk)?;
        }
        Ok(walk.all)
    }

    fn add(&self, value: &Bound<'py, PyAny>, path: String, walk: &mut Walk<'py>) -> PyResult<()> {
        let unread = |why: Closed| -> PyResult<PartValue<'py>> {
            Ok(PartValue::Other(LeafValue::Unread { class: self.classes.of(value)?.name()?, why: why.to_owned() }))
        };
        if walk.all.len() >= MOST {
            let is_told =
                matches!(walk.all.last(), Some(ResultPart { value: PartValue::Other(LeafValue::Unread { .. }), .. }));
            if !is_told {
                let value = unread("there are too many values in front of it")?;
                walk.all.push(ResultPart { path, value });
            }
            return Ok(());
        }
        if let Some(value) = self.known(value)? {
            walk.all.push(ResultPart { path, value });
            return Ok(());
        }
        let class = self.classes.of(value)?;
        if let Some(value) = self.single(value, &class)? {
            walk.all.push(ResultPart { path, value });
            return Ok(());
        }
        if let Some((_, above)) = walk.open.iter().find(|(open, _)| *open == value.as_ptr() as usize) {
            let value = LeafValue::Plain { class: "value that holds itself".to_owned(), text: above.clone() };
            walk.all.push(ResultPart { path, value: PartValue::Other(value) });
            return Ok(());
        }
        let opened = match walk.open.len() {
            DEEPEST => Err("too many others hold it"),
            _ => self.opened(value, &class)?,
        };
        let Opened { class, stands_for, items } = match opened {
            Ok(opened) => opened,
            Err(why) => {
                walk.all.push(ResultPart { path, value: unread(why)? });
                return Ok(());
            }
        };
        let container = PartValue::Other(LeafValue::Container { class, stands_for });
        walk.all.push(ResultPart { path: path.clone(), value: container });
        walk.open.push((value.as_ptr() as usize, path.clone()));
        for (step, item) in items {
            self.add(&item, format!("{path}{step}"), walk)?;
        }
        walk.open.pop();
        Ok(())
    }

    /// The value, if its type is a known one.
    fn known(&self, value: &Bound<'py, PyAny>) -> PyResult<Option<PartValue<'py>>> {
        let of = value.get_type();
        if let Some((name, _)) = self.tensors.iter().find(|(_, one)| one.is(&of)) {
            return Ok(Some(PartValue::Tensor { class: name.clone(), tensor: value.clone() }));
        }
        if let Some((name, _)) = self.plain.iter().find(|(_, one)| one.is(&of)) {
            let plain = LeafValue::Plain { class: name.clone(), text: value.repr()?.to_string() };
            return Ok(Some(PartValue::Other(plain)));
        }
        Ok(None)
    }

    /// The value, if it has another type that contains no other values.
    fn single(&self, value: &Bound<'py, PyAny>, class: &ClassHierarchy<'py, '_>) -> PyResult<Option<PartValue<'py>>> {
        if self.arrays.as_ref().is_some_and(|arrays| arrays.is_own(value, class)) {
            return Ok(Some(PartValue::Array(value.clone())));
        }
        let is_set = value.is_exact_instance_of::<PySet>() || value.is_exact_instance_of::<PyFrozenSet>();
        let is_type = value.is_exact_instance_of::<PyType>() && value.cast::<PyType>().is_ok_and(is_fixed);
        let text = match () {
            () if is_set || class.is_below(&self.enumeration) => self.text(value)?,
            () if is_type => Some(value.repr()?.to_string()),
            () => None,
        };
        let Some(text) = text else { return Ok(None) };
        Ok(Some(PartValue::Other(LeafValue::Plain { class: class.name()?, text })))
    }

    /// A text that describes a value completely, if it is simple enough to be a set element or a dictionary key.
    fn text(&self, value: &Bound<'py, PyAny>) -> PyResult<Option<String>> {
        let all = |items: Vec<Bound<'py, PyAny>>| {
            items.iter().map(|item| self.text(item)).collect::<PyResult<Option<Vec<_>>>>()
        };
        if self.plain.iter().any(|(_, one)| one.is(value.get_type())) {
            return Ok(Some(value.repr()?.to_string()));
        }
        if value.is_exact_instance_of::<PySet>() || value.is_exact_instance_of::<PyFrozenSet>() {
            let items = value.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            return Ok(all(items)?.map(|mut items| {
                items.sort();
                format!("{{{}}}", items.join(", "))
            }));
        }
        if value.is_exact_instance_of::<PyTuple>() {
            let items = value.cast::<PyTuple>()?.iter().collect();
            return Ok(all(items)?.map(|items| format!("({},)", items.join(", "))));
        }
        let class = self.classes.of(value)?;
        if !class.is_below(&self.enumeration) || !class.has_plain_names()? {
            return Ok(None);
        }
        let Some(stored) = dictionary(value) else { return Ok(None) };
        if !stored.keys().iter().all(|name| name.is_exact_instance_of::<PyString>()) {
            return Ok(None);
        }
        let Some(held) = stored.get_item("_value_")? else { return Ok(None) };
        let name = stored.get_item("_name_")?.and_then(|name| name.cast_into_exact::<PyString>().ok());
        let held = if held.is(value) { None } else { self.text(&held)? };
        Ok(name.zip(held).and_then(|(name, held)| Some(format!("{}.{name} = {held}", class.name().ok()?))))
    }

    fn opened(
        &self,
        value: &Bound<'py, PyAny>,
        class: &ClassHierarchy<'py, '_>,
    ) -> PyResult<Result<Opened<'py>, Closed>> {
        if !class.has_plain_names()? {
            return Ok(Err("its class has attribute names that are not plain strings"));
        }
        if class.is_below(&self.tensor) {
            return self.tensor(value, class);
        }
        let numbered = |items: Vec<Bound<'py, PyAny>>| {
            items.into_iter().enumerate().map(|(at, item)| (format!("[{at}]"), item)).collect::<Vec<_>>()
        };
        if let Ok(tuple) = value.cast::<PyTuple>() {
            return self.container(value, class, "tuple", numbered(tuple.iter().collect()));
        }
        if let Ok(list) = value.cast::<PyList>() {
            return self.container(value, class, "list", numbered(list.iter().collect()));
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            let mut items = Vec::new();
            for (key, item) in dict {
                let Some(key) = self.text(&key)? else { return Ok(Err("not all of its keys can be read")) };
                items.push((format!("[{key}]"), item));
            }
            return self.container(value, class, "dict", items);
        }
        if class.is_below(&self.deque) {
            let items = self.items_of_deque.call1((value,))?.try_iter()?.collect::<PyResult<Vec<_>>>()?;
            let longest = self.length_of_deque.call_method1("__get__", (value,))?;
            let base = if longest.is_none() { "deque".to_owned() } else { format!("deque of at most {longest}") };
            return self.container(value, class, &base, numbered(items));
        }
        if let Ok(slice) = value.cast_exact::<PySlice>() {
            let parts =
                ["start", "stop", "step"].map(|name| slice.getattr(name).map(|part| (format!(".{name}"), part)));
            let items = parts.into_iter().collect::<PyResult<Vec<_>>>()?;
            return Ok(Ok(Opened { class: "slice".to_owned(), stands_for: None, items }));
        }
        let is_fixed = is_fixed(&value.get_type());
        let bytes = value.cast::<PyBytes>().ok().map(|bytes| PyBytes::new(value.py(), bytes.as_bytes()).into_any());
        let of = self.inner.iter().find(|(of, _)| class.is_below(of));
        let inner = of.map(|(_, by)| by.call1((value,))).transpose()?.or(bytes).filter(|_| !is_fixed);
        if let Some(inner) = inner {
            let base = inner.get_type().qualname()?.to_string();
            return self.container(value, class, &base, vec![(format!(" as {base}"), inner)]);
        }
        self.object(value, class)
    }

    /// The items of a container by its base type, and the attributes that an instance of a subclass may have besides.
    fn container(
        &self,
        value: &Bound<'py, PyAny>,
        class: &ClassHierarchy<'py, '_>,
        base: &str,
        mut items: Vec<(String, Bound<'py, PyAny>)>,
    ) -> PyResult<Result<Opened<'py>, Closed>> {
        let name = class.name()?;
        if is_fixed(&value.get_type()) && ["tuple", "list", "dict", "deque"].contains(&&*name) {
            return Ok(Ok(Opened { class: base.to_owned(), stands_for: None, items }));
        }
        let mut own = class.own_readers(if base == "dict" { DICT_READERS } else { &[] }, &[])?;
        let fields = class.find("_fields")?.and_then(|fields| fields.cast_into_exact::<PyTuple>().ok());
        let fields = fields.map(|fields| fields.iter().map(|name| name.extract()).collect::<PyResult<Vec<String>>>());
        let mut title = match fields {
            Some(Ok(fields)) if base == "tuple" => format!("named tuple {name}({})", fields.join(", ")),
            _ => format!("{name} (a {base})"),
        };
        // A dictionary that creates missing items is not plain, whichever module defines it.
        let is_plain = own.is_empty() && class.find("__missing__")?.is_none() && !base.starts_with("deque");
        let stands_for = (is_plain && !items.iter().any(|(step, _)| step.starts_with(' '))).then(|| base.to_owned());
        if !is_fixed(&value.get_type()) {
            if class.hides_something()? {
                return Ok(Err("it holds what no Python code can see"));
            }
            let Some(InstanceState { items: more, computed }) = class.instance(value)? else { return Ok(Err(NAMES)) };
            items.extend(more.into_iter().map(|(name, item)| (format!(".{name}"), item)));
            own.extend(computed);
        }
        with_own(&mut title, &own);
        Ok(Ok(Opened { class: title, stands_for, items }))
    }

    /// A tensor whose class adds behaviour, or which has attributes of its own.
    fn tensor(
        &self,
        value: &Bound<'py, PyAny>,
        class: &ClassHierarchy<'py, '_>,
    ) -> PyResult<Result<Opened<'py>, Closed>> {
        let known: Vec<_> = self.tensors.iter().map(|(_, known)| known).collect();
        let own = class.own_readers(TENSOR_READERS, &known)?;
        let is_plain = !own.iter().any(|name| name == DISPATCH) && !class.hides_something()?;
        let (Some((as_subclass, quietly)), true) = (&self.as_subclass, is_plain) else {
            return Ok(Err("its class overrides operators of torch"));
        };
        let tensor = within(&[&quietly.call0()?], || as_subclass.call1((value, &self.tensor)))?;
        let Some(InstanceState { items, computed }) = class.instance(value)? else { return Ok(Err(NAMES)) };
        let mut title = format!("{} (a tensor)", class.name()?);
        with_own(&mut title, &[own, computed].concat());
        let items = items.into_iter().map(|(name, item)| (format!(".{name}"), item));
        let items = [(" as tensor".to_owned(), tensor)].into_iter().chain(items).collect();
        Ok(Ok(Opened { class: title, stands_for: None, items }))
    }

    /// An instance of a class that is written in Python.
    fn object(
        &self,
        value: &Bound<'py, PyAny>,
        class: &ClassHierarchy<'py, '_>,
    ) -> PyResult<Result<Opened<'py>, Closed>> {
        let base = class.base()?;
        let is_namespace = base.as_ref().is_some_and(|base| base.is(&self.namespace));
        let is_object = base.is_some_and(|base| {
            base.cast::<PyType>().is_ok_and(|base| base.qualname().is_ok_and(|name| name == "object"))
        });
        if !is_object && !is_namespace {
            return Ok(Err("it is of a class that is not written in Python"));
        }
        if class.module().split('.').next() == Some("triton") {
            return Ok(Err("Triton creates it again for each file"));
        }
        if class.hides_something()? {
            return Ok(Err("it holds what no Python code can see"));
        }
        let Some(InstanceState { items, computed }) = class.instance(value)? else { return Ok(Err(NAMES)) };
        if let Some(fields) = class.find("__dataclass_fields__")? {
            return match fields.cast_into::<PyDict>() {
                Ok(fields) => self.data_class(value, class, &fields, items).map(Ok),
                Err(_) => Ok(Err("its fields cannot be read")),
            };
        }
        let names: Vec<&str> = items.iter().map(|(name, _)| name.as_str()).collect();
        let mut title = format!("{}({})", class.name()?, names.join(", "));
        with_own(&mut title, &[class.own_readers(&[], &[])?, computed].concat());
        let items = items.into_iter().map(|(name, item)| (format!(".{name}"), item)).collect();
        Ok(Ok(Opened { class: title, stands_for: None, items }))
    }

    fn data_class(
        &self,
        value: &Bound<'py, PyAny>,
        class: &ClassHierarchy<'py, '_>,
        fields: &Bound<'py, PyDict>,
        mut more: Vec<(String, Bound<'py, PyAny>)>,
    ) -> PyResult<Opened<'py>> {
        let (mut names, mut items, mut computed) = (Vec::new(), Vec::new(), class.own_readers(&[], &[])?);
        for (name, field) in fields {
            let is_known = field.get_type().is(&self.field);
            // Class variables and init-only variables are not fields.
            if is_known && !field.getattr("_field_type")?.is(&self.field_kind) {
                continue;
            }
            let name: String = name.extract()?;
            let item = match class.stored(value, &name)? {
                Some(item) => item,
                None => {
                    computed.push(name.clone());
                    value.getattr(name.as_str())?
                }
            };
            more.retain(|(other, _)| *other != name);
            items.push((format!(".{name}"), item));
            names.push(name);
        }
        let mut title = format!("data class {}({})", class.name()?, names.join(", "));
        with_own(&mut title, &computed);
        // Further attributes.
        items.extend(more.into_iter().map(|(name, item)| (format!(".{name}"), item)));
        Ok(Opened { class: title, stands_for: None, items })
    }
}

const NAMES: Closed = "it has attribute names that are not plain strings";

fn with_own(title: &mut String, own: &[String]) {
    if !own.is_empty() {
        *title += &format!(" with its own {}", own.join(", "));
    }
}
