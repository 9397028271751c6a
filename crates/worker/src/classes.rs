//! Types of values, asked as the interpreter stores them: what a type or its own type says of itself is never called.
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
/// The flags of types that are made at run time, and of those that nobody can change all the same.
const HEAP_TYPE: std::ffi::c_ulong = 1 << 9;
const IMMUTABLE_TYPE: std::ffi::c_ulong = 1 << 8;
/// Bytes of a reference.
const REFERENCE: isize = size_of::<usize>() as isize;

/// What types say of themselves, as it was before the file was loaded; their own types may answer otherwise.
pub(super) struct Classes<'py> {
    mro: Bound<'py, PyAny>,
    members: Bound<'py, PyAny>,
    name: Bound<'py, PyAny>,
    module: Bound<'py, PyAny>,
    basic_size: Bound<'py, PyAny>,
    item_size: Bound<'py, PyAny>,
    /// Where instances have their dictionary, and what refers to them weakly; 0 for nowhere, below that for nowhere inside.
    places: [Bound<'py, PyAny>; 2],
    /// The types of what reads a slot, and of `__dict__` in a class.
    slot: Bound<'py, PyAny>,
    computed: Bound<'py, PyAny>,
}

impl<'py> Classes<'py> {
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
    pub(super) fn of<'a>(&'a self, value: &Bound<'py, PyAny>) -> PyResult<Class<'py, 'a>> {
        let all = self.mro.call_method1("__get__", (value.get_type(),))?.cast_into()?;
        Ok(Class { asked: self, all })
    }
}

/// The type of a value, with those below.
pub(super) struct Class<'py, 'a> {
    asked: &'a Classes<'py>,
    pub(super) all: Bound<'py, PyTuple>,
}

/// What an instance stores.
#[derive(Default)]
pub(super) struct Stored<'py> {
    /// By name, in the order of the names.
    pub(super) items: Vec<(String, Bound<'py, PyAny>)>,
    /// Of these, what is computed all the same when somebody reads it.
    pub(super) computed: Vec<String>,
}

impl<'py> Class<'py, '_> {
    pub(super) fn is_below(&self, class: &Bound<'py, PyAny>) -> bool {
        self.all.iter().any(|one| one.is(class))
    }

    /// What a type says of itself.
    fn ask(&self, what: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        what.call_method1("__get__", (self.all.get_item(0)?,))
    }

    pub(super) fn name(&self) -> PyResult<String> {
        self.ask(&self.asked.name)?.extract()
    }

    /// Where it says that it was made.
    pub(super) fn module(&self) -> String {
        self.ask(&self.asked.module).and_then(|module| module.extract()).unwrap_or_default()
    }

    fn members(&self, class: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.asked.members.call_method1("__get__", (class,))
    }

    /// Those that can be changed: written in Python, for the most part.
    fn open(&self) -> impl Iterator<Item = Bound<'py, PyAny>> {
        self.all.iter().filter(|class| !class.cast::<PyType>().is_ok_and(is_fixed))
    }

    /// Whether each name in it is plain text: another one may run code when it is looked for.
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

    /// What the first of the types has that has something of this name.
    pub(super) fn find(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        for class in &self.all {
            let members = self.members(&class)?;
            if members.contains(name)? {
                return members.get_item(name).map(Some);
            }
        }
        Ok(None)
    }

    /// Which readers types written in Python have, those in `except` left out.
    pub(super) fn own_readers(&self, more: &[&str], except: &[&Bound<'py, PyAny>]) -> PyResult<Vec<String>> {
        let mut found: Vec<String> = Vec::new();
        for class in self.open().filter(|class| !except.iter().any(|one| one.is(class))) {
            let members = self.members(&class)?;
            for name in READERS.iter().chain(more) {
                let is_known = found.iter().any(|one| one == name);
                // Each class whose instances have a dictionary has something that reads it.
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

    /// Whether reading something of a class from an instance asks that thing before the instance.
    fn comes_first(&self, found: &Bound<'py, PyAny>) -> PyResult<bool> {
        let kind = self.asked.of(found)?;
        Ok(kind.find("__set__")?.is_some() || kind.find("__delete__")?.is_some())
    }

    /// What is stored under a name; nothing where reading it computes something.
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
        // A default.
        let Some(found) = in_class else { return Ok(None) };
        Ok(self.asked.of(&found)?.find("__get__")?.is_none().then_some(found))
    }

    /// The class written in C that instances are laid out by.
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

    /// Whether instances hold more than their base, their dictionary and the slots that their classes name. Classes that are
    /// written in C and can be changed all the same do, and those whose slots were hidden.
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

    /// What is in the dictionary and the slots of an instance; nothing where that cannot be told without calling something.
    pub(super) fn instance(&self, value: &Bound<'py, PyAny>) -> PyResult<Option<Stored<'py>>> {
        let mut all = Stored::default();
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
                // One that nothing was put into, and one that another class has hidden.
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

/// Whether nobody can change a type: it is written in C.
pub(super) fn is_fixed(class: &Bound<'_, PyType>) -> bool {
    // SAFETY: the pointer is to a live type.
    let flags = unsafe { pyo3::ffi::PyType_GetFlags(class.as_type_ptr()) };
    flags & HEAP_TYPE == 0 || flags & IMMUTABLE_TYPE != 0
}

/// The dictionary of an instance that has one.
pub(super) fn dictionary<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyDict>> {
    // SAFETY: it gives a new reference, or nothing with an error set.
    let found = unsafe {
        let found = pyo3::ffi::PyObject_GenericGetDict(value.as_ptr(), std::ptr::null_mut());
        Bound::from_owned_ptr_or_err(value.py(), found)
    };
    found.ok().and_then(|found| found.cast_into().ok())
}
