//! What results are made of, read without asking them: nothing of the user's runs meanwhile that could compute what is read.
#![expect(unsafe_code, reason = "dictionaries of instances and flags of types are read as the interpreter does")]

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

/// Containers deeper than so many others are compared by how they print.
const DEEPEST: usize = 16;
/// Methods through which containers are read.
const READERS: &[&str] = &[
    "__class__",
    "__contains__",
    "__getattr__",
    "__getattribute__",
    "__getitem__",
    "__iter__",
    "__len__",
    "__reversed__",
];
/// Those of dictionaries alone.
const DICT_READERS: &[&str] = &["__missing__", "get", "items", "keys", "values"];
/// The flags of types that are made at run time, and of those that nobody can change all the same.
const HEAP_TYPE: std::ffi::c_ulong = 1 << 9;
const IMMUTABLE_TYPE: std::ffi::c_ulong = 1 << 8;

/// The way to a value inside another.
#[derive(Clone)]
enum Step<'py> {
    Index(usize),
    Key(Bound<'py, PyAny>),
    Field(String),
}

/// A value inside results, or what holds some.
pub(super) struct Part<'py> {
    root: String,
    steps: Vec<Step<'py>>,
    pub(super) value: Value<'py>,
}

pub(super) enum Value<'py> {
    Tensor(Bound<'py, PyAny>),
    Container { class: String, stands_for: Option<String> },
    Plain(Bound<'py, PyAny>),
}

impl Part<'_> {
    /// The way to it, in words. Keys are asked how they print.
    pub(super) fn path(&self) -> PyResult<String> {
        let mut path = self.root.clone();
        for step in &self.steps {
            match step {
                Step::Index(at) => path += &format!("[{at}]"),
                Step::Key(key) => path += &format!("[{}]", key.repr()?),
                Step::Field(name) => path += &format!(".{name}"),
            }
        }
        Ok(path)
    }
}

/// What types say of themselves, as it was before the file was loaded; their own types may answer otherwise.
pub(super) struct Reader<'py> {
    tensor: Bound<'py, PyAny>,
    tensor_name: String,
    modules: Bound<'py, PyAny>,
    /// `type.__mro__` and others.
    mro: Bound<'py, PyAny>,
    members: Bound<'py, PyAny>,
    name: Bound<'py, PyAny>,
    module: Bound<'py, PyAny>,
    /// The type of what reads a slot.
    slot: Bound<'py, PyAny>,
    field: Bound<'py, PyAny>,
    field_kind: Bound<'py, PyAny>,
}

impl<'py> Reader<'py> {
    pub(super) fn new(py: Python<'py>, tensor: Bound<'py, PyAny>) -> PyResult<Self> {
        let of = py.get_type::<PyType>().getattr("__dict__")?;
        let dataclasses = py.import("dataclasses")?;
        Ok(Self {
            tensor_name: tensor.cast::<PyType>()?.fully_qualified_name()?.to_string(),
            tensor,
            modules: py.import("sys")?.getattr("modules")?,
            mro: of.get_item("__mro__")?,
            members: of.get_item("__dict__")?,
            name: of.get_item("__qualname__")?,
            module: of.get_item("__module__")?,
            slot: py.import("types")?.getattr("MemberDescriptorType")?,
            field: dataclasses.getattr("Field")?,
            field_kind: dataclasses.getattr("_FIELD")?,
        })
    }

    /// Adds a value with what is inside, depth first.
    pub(super) fn read(&self, value: &Bound<'py, PyAny>, root: &str, all: &mut Vec<Part<'py>>) -> PyResult<()> {
        self.add(value, root, &[], all)
    }

    fn add(
        &self,
        value: &Bound<'py, PyAny>,
        root: &str,
        steps: &[Step<'py>],
        all: &mut Vec<Part<'py>>,
    ) -> PyResult<()> {
        let class = Class::new(self, value)?;
        let mut push = |value| all.push(Part { root: root.to_owned(), steps: steps.to_vec(), value });
        if class.is_below(&self.tensor) {
            push(Value::Tensor(value.clone()));
            return Ok(());
        }
        let Some((class, stands_for, items)) = self.opened(value, &class, steps.len())? else {
            push(Value::Plain(value.clone()));
            return Ok(());
        };
        push(Value::Container { class, stands_for });
        for (step, item) in items {
            self.add(&item, root, &[steps, &[step]].concat(), all)?;
        }
        Ok(())
    }

    /// What a container is, what it stands for, and what it holds.
    fn opened(&self, value: &Bound<'py, PyAny>, class: &Class<'py, '_>, depth: usize) -> PyResult<Option<Opened<'py>>> {
        if depth == DEEPEST {
            return Ok(None);
        }
        let numbered = |items: Vec<Bound<'py, PyAny>>| {
            items.into_iter().enumerate().map(|(at, item)| (Step::Index(at), item)).collect()
        };
        let (base, items): (_, Vec<_>) = if let Ok(tuple) = value.cast::<PyTuple>() {
            ("tuple", numbered(tuple.iter().collect()))
        } else if let Ok(list) = value.cast::<PyList>() {
            ("list", numbered(list.iter().collect()))
        } else if let Ok(dict) = value.cast::<PyDict>() {
            ("dict", dict.iter().map(|(key, item)| (Step::Key(key), item)).collect())
        } else if let Some(fields) = class.find("__dataclass_fields__")? {
            let Ok(fields) = fields.cast_into::<PyDict>() else { return Ok(None) };
            return self.data_class(value, class, &fields).map(Some);
        } else {
            return Ok(None);
        };
        let is_plain = value.is_exact_instance_of::<PyTuple>()
            || value.is_exact_instance_of::<PyList>()
            || value.is_exact_instance_of::<PyDict>();
        if is_plain {
            return Ok(Some((base.to_owned(), None, items)));
        }
        let own = class.own_readers(if base == "dict" { DICT_READERS } else { &[] })?;
        let fields = class.find("_fields")?.and_then(|fields| fields.cast_into_exact::<PyTuple>().ok());
        let fields = fields.map(|fields| fields.iter().map(|name| name.extract()).collect::<PyResult<Vec<String>>>());
        let mut title = match fields {
            Some(Ok(fields)) if base == "tuple" => format!("named tuple {}({})", class.name()?, fields.join(", ")),
            _ => format!("{} (a {base})", class.name()?),
        };
        // One that makes up what is missing is no plain one, whoever has written it.
        let stands_for = (own.is_empty() && class.find("__missing__")?.is_none()).then(|| base.to_owned());
        if !own.is_empty() {
            title += &format!(" with its own {}", own.join(", "));
        }
        Ok(Some((title, stands_for, items)))
    }

    fn data_class(
        &self,
        value: &Bound<'py, PyAny>,
        class: &Class<'py, '_>,
        fields: &Bound<'py, PyDict>,
    ) -> PyResult<Opened<'py>> {
        let (mut names, mut items, mut computed) = (Vec::new(), Vec::new(), class.own_readers(&[])?);
        for (name, field) in fields {
            let is_known = field.get_type().is(&self.field);
            // What belongs to the class, or to its making alone, is no field.
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
            names.push(name.clone());
            items.push((Step::Field(name), item));
        }
        let mut title = format!("data class {}({})", class.name()?, names.join(", "));
        if !computed.is_empty() {
            title += &format!(" with its own {}", computed.join(", "));
        }
        Ok((title, None, items))
    }

    /// The name of a value's type, with its module. It is only one's own if it is found there.
    pub(super) fn class_of(&self, value: &Bound<'py, PyAny>) -> PyResult<String> {
        let class = Class::new(self, value)?;
        if class.all.get_item(0)?.is(&self.tensor) {
            return Ok(self.tensor_name.clone());
        }
        let (name, module) = (class.name()?, class.ask(&self.module)?);
        let known = self.modules.get_item(&module);
        let found = known.and_then(|module| name.split('.').try_fold(module, |found, part| found.getattr(part)));
        let is_own = is_fixed(&value.get_type()) || found.is_ok_and(|found| found.is(value.get_type()));
        let full = match module.extract::<String>() {
            Ok(module) if module != "builtins" => format!("{module}.{name}"),
            _ => name,
        };
        Ok(if is_own { full } else { format!("another class {full}") })
    }
}

/// What it is, what it stands for, what it holds.
type Opened<'py> = (String, Option<String>, Vec<(Step<'py>, Bound<'py, PyAny>)>);

/// The type of a value, with those below.
struct Class<'py, 'a> {
    reader: &'a Reader<'py>,
    all: Bound<'py, PyTuple>,
}

impl<'py, 'a> Class<'py, 'a> {
    fn new(reader: &'a Reader<'py>, value: &Bound<'py, PyAny>) -> PyResult<Self> {
        let all = reader.mro.call_method1("__get__", (value.get_type(),))?.cast_into()?;
        Ok(Self { reader, all })
    }

    fn is_below(&self, class: &Bound<'py, PyAny>) -> bool {
        self.all.iter().any(|one| one.is(class))
    }

    /// What a type says of itself.
    fn ask(&self, what: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        what.call_method1("__get__", (self.all.get_item(0)?,))
    }

    fn name(&self) -> PyResult<String> {
        self.ask(&self.reader.name)?.extract()
    }

    fn members(&self, class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.reader.members.call_method1("__get__", (class,))
    }

    /// What the first of the types has that has something of this name.
    fn find(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        for class in &self.all {
            let members = self.members(&class)?;
            if members.contains(name)? {
                return members.get_item(name).map(Some);
            }
        }
        Ok(None)
    }

    /// Which readers types written in Python have.
    fn own_readers(&self, more: &[&str]) -> PyResult<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        for class in &self.all {
            if class.cast::<PyType>().is_ok_and(is_fixed) {
                continue;
            }
            let members = self.members(&class)?;
            for name in READERS.iter().chain(more) {
                if members.contains(name)? && !found.iter().any(|one| one == name) {
                    found.push((*name).to_owned());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// What is stored under a name; nothing where reading it computes something.
    fn stored(&self, value: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let in_class = self.find(name)?;
        if let Some(found) = &in_class {
            let kind = Class::new(self.reader, found)?;
            if found.get_type().is(&self.reader.slot) {
                return found.call_method1("__get__", (value, value.get_type())).map(Some);
            }
            if kind.find("__set__")?.is_some() || kind.find("__delete__")?.is_some() {
                return Ok(None);
            }
        }
        if let Some(found) = dictionary(value)?.map(|all| all.get_item(name)).transpose()?.flatten() {
            return Ok(Some(found));
        }
        // A default.
        let Some(found) = in_class else { return Ok(None) };
        Ok(Class::new(self.reader, &found)?.find("__get__")?.is_none().then_some(found))
    }
}

/// Whether nobody can change a type: it is written in C.
fn is_fixed(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: the pointer is to a live type.
    let flags = unsafe { pyo3::ffi::PyType_GetFlags(class.as_type_ptr()) };
    flags & HEAP_TYPE == 0 || flags & IMMUTABLE_TYPE != 0
}

/// The dictionary of an instance that has one.
fn dictionary<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyDict>>> {
    // SAFETY: it gives a new reference, or nothing with an error set.
    let found = unsafe {
        let found = pyo3::ffi::PyObject_GenericGetDict(value.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(value.py(), found)
    };
    Ok(found.ok().and_then(|found| found.cast_into().ok()))
}
