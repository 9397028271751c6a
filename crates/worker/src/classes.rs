//! The types of values, read as the interpreter stores them. No method that a type or its metatype defines is called.
#![expect(unsafe_code, reason = "dictionaries of instances and flags of types are read as the interpreter does")]

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

/// Methods through which containers and objects are read.
const READERS: &[&str] = &[
    "__class__",
    "__contains__",
    "__dict__",
    "__getattr__",
    "__getattribute__",
    "__getitem__",
    "__iter__",
    "__len__",
    "__reversed__",
];
/// The flags of types that are created at run time, and of immutable types among them.
const HEAP_TYPE: std::ffi::c_ulong = 1 << 9;
const IMMUTABLE_TYPE: std::ffi::c_ulong = 1 << 8;
/// The size of a reference in bytes.
const REFERENCE: isize = size_of::<usize>() as isize;

/// Descriptors that read the properties of types, taken before the file was loaded; metatypes may return something
/// else.
pub(super) struct TypeInspector<'py> {
    mro: Bound<'py, PyAny>,
    members: Bound<'py, PyAny>,
    name: Bound<'py, PyAny>,
    module: Bound<'py, PyAny>,
    basic_size: Bound<'py, PyAny>,
    item_size: Bound<'py, PyAny>,
    /// The offset of the instance dictionary and that of the weak references; 0 means none, a negative offset means
    /// that the interpreter manages it.
    places: [Bound<'py, PyAny>; 2],
    /// The type of slot descriptors, and that of the descriptor of `__dict__` in a class.
    slot: Bound<'py, PyAny>,
    computed: Bound<'py, PyAny>,
}

impl<'py> TypeInspector<'py> {
    pub(super) fn new(py: Python<'py>) -> PyResult<Self> {
        let of = py.get_type::<PyType>().getattr("__dict__")?;
        let types = py.import("types")?;
        Ok(Self {
            mro: of.get_item("__mro__")?,
            members: of.get_item("__dict__")?,
            name: of.get_item("__qualname__")?,
            module: of.get_item("__module__")?,
            basic_size: of.get_item("__basicsize__")?,
            item_size: of.get_item("__itemsize__")?,
            places: [of.get_item("__dictoffset__")?, of.get_item("__weakrefoffset__")?],
            slot: types.getattr("MemberDescriptorType")?,
            computed: types.getattr("GetSetDescriptorType")?,
        })
    }

    /// The type of a value.
    pub(super) fn of<'a>(&'a self, value: &Bound<'py, PyAny>) -> PyResult<ClassHierarchy<'py, 'a>> {
        let all = self.mro.call_method1("__get__", (value.get_type(),))?.cast_into()?;
        Ok(ClassHierarchy { asked: self, all })
    }
}

/// The type of a value with all its base types.
pub(super) struct ClassHierarchy<'py, 'a> {
    asked: &'a TypeInspector<'py>,
    pub(super) all: Bound<'py, PyTuple>,
}

/// The stored attributes of an instance.
#[derive(Default)]
pub(super) struct InstanceState<'py> {
    /// Attributes, sorted by name.
    pub(super) items: Vec<(String, Bound<'py, PyAny>)>,
    /// The names of attributes whose reading runs code nevertheless.
    pub(super) computed: Vec<String>,
}

impl<'py> ClassHierarchy<'py, '_> {
    pub(super) fn is_below(&self, class: &Bound<'py, PyAny>) -> bool {
        self.all.iter().any(|one| one.is(class))
    }

    /// Reads a property of the type.
    fn ask(&self, what: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        what.call_method1("__get__", (self.all.get_item(0)?,))
    }

    pub(super) fn name(&self) -> PyResult<String> {
        self.ask(&self.asked.name)?.extract()
    }

    /// The name of the module that defines the type.
    pub(super) fn module(&self) -> String {
        self.ask(&self.asked.module).and_then(|module| module.extract()).unwrap_or_default()
    }

    fn members(&self, class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.asked.members.call_method1("__get__", (class,))
    }

    /// The base types that can be changed, most of which are written in Python.
    fn open(&self) -> impl Iterator<Item = Bound<'py, PyAny>> {
        self.all.iter().filter(|class| !class.cast::<PyType>().is_ok_and(is_fixed))
    }

    /// Whether each name in the type's dictionary is a plain string: looking up another key may run code.
    pub(super) fn has_plain_names(&self) -> PyResult<bool> {
        for class in self.open() {
            for name in self.members(&class)?.try_iter()? {
                if !name?.is_exact_instance_of::<PyString>() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// The attribute of this name in the first type that has one.
    pub(super) fn find(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        for class in &self.all {
            let members = self.members(&class)?;
            if members.contains(name)? {
                return members.get_item(name).map(Some);
            }
        }
        Ok(None)
    }

    /// The readers that types written in Python define, except those in `except`.
    pub(super) fn own_readers(&self, more: &[&str], except: &[&Bound<'py, PyAny>]) -> PyResult<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        for class in self.open().filter(|class| !except.iter().any(|one| one.is(class))) {
            let members = self.members(&class)?;
            for name in READERS.iter().chain(more) {
                let is_known = found.iter().any(|one| one == name);
                // Each class whose instances have a dictionary has a descriptor that reads it.
                if !is_known
                    && members.contains(name)?
                    && !(*name == "__dict__" && members.get_item(name)?.get_type().is(&self.asked.computed))
                {
                    found.push((*name).to_owned());
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Whether an attribute of the class takes precedence over the instance's dictionary.
    fn comes_first(&self, found: &Bound<'py, PyAny>) -> PyResult<bool> {
        let kind = self.asked.of(found)?;
        Ok(kind.find("__set__")?.is_some() || kind.find("__delete__")?.is_some())
    }

    /// The stored value of an attribute; `None` where reading it would run code.
    pub(super) fn stored(&self, value: &Bound<'py, PyAny>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let in_class = self.find(name)?;
        if let Some(found) = &in_class {
            if found.get_type().is(&self.asked.slot) {
                return found.call_method1("__get__", (value, value.get_type())).map(Some);
            }
            if self.comes_first(found)? {
                return Ok(None);
            }
        }
        if let Some(found) = dictionary(value).map(|all| all.get_item(name)).transpose()?.flatten() {
            return Ok(Some(found));
        }
        // A default value in the class.
        let Some(found) = in_class else { return Ok(None) };
        Ok(self.asked.of(&found)?.find("__get__")?.is_none().then_some(found))
    }

    /// The class written in C that determines the layout of instances.
    pub(super) fn base(&self) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut largest: Option<(isize, Bound<'py, PyAny>)> = None;
        for class in self.all.iter().filter(|class| class.cast::<PyType>().is_ok_and(is_fixed)) {
            let size: isize = self.asked.basic_size.call_method1("__get__", (&class,))?.extract()?;
            if largest.as_ref().is_none_or(|(most, _)| size > *most) {
                largest = Some((size, class));
            }
        }
        Ok(largest.map(|(_, class)| class))
    }

    /// Whether instances hold more than their base, their dictionary and the slots that their classes name. That is so
    /// for mutable classes written in C, and for classes whose slots were hidden.
    pub(super) fn hides_something(&self) -> PyResult<bool> {
        let (class, Some(base)) = (self.all.get_item(0)?, self.base()?) else { return Ok(true) };
        let of = |what: &Bound<'py, PyAny>, class: &Bound<'py, PyAny>| -> PyResult<isize> {
            what.call_method1("__get__", (class,))?.extract()
        };
        let size = of(&self.asked.basic_size, &class)?;
        let mut expected = of(&self.asked.basic_size, &base)?;
        if of(&self.asked.item_size, &base)? != 0 {
            // These have no slots.
            return Ok(size > expected + 2 * REFERENCE);
        }
        for place in &self.asked.places {
            if of(place, &class)? > 0 && of(place, &base)? == 0 {
                expected += REFERENCE;
            }
        }
        for class in self.open() {
            for member in self.members(&class)?.call_method0("values")?.try_iter()? {
                expected += if member?.get_type().is(&self.asked.slot) { REFERENCE } else { 0 };
            }
        }
        Ok(size != expected)
    }

    /// The contents of an instance's dictionary and slots; `None` where reading them would call code.
    pub(super) fn instance(&self, value: &Bound<'py, PyAny>) -> PyResult<Option<InstanceState<'py>>> {
        let mut all = InstanceState::default();
        for (name, item) in dictionary(value).iter().flat_map(|all| all.iter()) {
            if !name.is_exact_instance_of::<PyString>() {
                return Ok(None);
            }
            let name: String = name.extract()?;
            if self.find(&name)?.is_some_and(|found| self.comes_first(&found).unwrap_or(true)) {
                all.computed.push(name.clone());
            }
            all.items.push((name, item));
        }
        for class in self.open() {
            for pair in self.members(&class)?.call_method0("items")?.try_iter()? {
                let (name, member): (Bound<'py, PyAny>, Bound<'py, PyAny>) = pair?.extract()?;
                if !member.get_type().is(&self.asked.slot) {
                    continue;
                }
                let name: String = name.extract()?;
                // An empty slot, or one that another class hides.
                let Ok(item) = member.call_method1("__get__", (value, value.get_type())) else { continue };
                if all.items.iter().any(|(other, _)| *other == name) {
                    continue;
                }
                if !self.find(&name)?.is_some_and(|found| found.is(&member)) {
                    all.computed.push(name.clone());
                }
                all.items.push((name, item));
            }
        }
        all.items.sort_by(|(one, _), (other, _)| one.cmp(other));
        all.computed.sort();
        Ok(Some(all))
    }
}

/// Whether a type is immutable because it is written in C.
pub(super) fn is_fixed(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: the pointer is to a live type.
    let flags = unsafe { pyo3::ffi::PyType_GetFlags(class.as_type_ptr()) };
    flags & HEAP_TYPE == 0 || flags & IMMUTABLE_TYPE != 0
}

/// The dictionary of an instance, if it has one.
pub(super) fn dictionary<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: it gives a new reference, or nothing with an error set.
    let found = unsafe {
        let found = pyo3::ffi::PyObject_GenericGetDict(value.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(value.py(), found)
    };
    found.ok().and_then(|found| found.cast_into().ok())
}
