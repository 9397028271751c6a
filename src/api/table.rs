//! One version's table.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::Version;

/// What one Triton version offers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The release it was read from.
    pub version: Version,
    /// Described modules by full name (`triton.language`, `triton.language.math`, …) with their members by name.
    pub modules: BTreeMap<String, BTreeMap<String, Member>>,
    /// Keywords that a launch accepts beside the kernel's parameters (`num_warps`, …), over all its back ends.
    pub launch_options: Vec<String>,
}

/// A member of a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// What it is.
    pub kind: MemberKind,
    /// Its parameters, for something that can be called in a kernel; compiler-internal ones are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<Parameter>,
}

/// What a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemberKind {
    /// Implemented by the compiler (`@builtin`).
    Builtin,
    /// Written in Triton (`@triton.jit`).
    Jit,
    /// A plain Python function.
    Function,
    /// A class.
    Class,
    /// A dtype instance such as `float32`.
    Dtype,
    /// A module.
    Module,
    /// Any other value.
    Value,
}

/// A parameter of a callable member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Its name, with `*` or `**` for variadic ones.
    pub name: String,
    /// Its default as source text, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

/// What a table says about a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// The version has it.
    Found(&'static Member),
    /// The module is described and does not have it.
    Absent,
    /// The table does not describe the place (`triton.language.extra`, members of classes and values).
    Undescribed,
}

static TABLES: LazyLock<Vec<&'static Table>> = LazyLock::new(load);

fn load() -> Vec<&'static Table> {
    // Leaked once: tables live as long as the process and are shared by reference.
    TEXTS
        .iter()
        .map(|text| &*Box::leak(Box::new(serde_json::from_str(text).expect("the tables are generated and tested"))))
        .collect()
}

const TEXTS: &[&str] = &[];

impl Table {
    /// All tables, oldest first.
    #[must_use]
    pub fn all() -> &'static [&'static Table] {
        &TABLES
    }

    /// The table of the newest release.
    #[must_use]
    pub fn newest() -> &'static Table {
        TABLES.last().expect("there is a table")
    }

    /// The table of the same minor release, else of the nearest older one, else the oldest.
    #[must_use]
    pub fn nearest(version: Version) -> &'static Table {
        let minor = |table: &&&Table| (table.version.major, table.version.minor) <= (version.major, version.minor);
        TABLES.iter().rev().find(minor).unwrap_or(&TABLES[0])
    }

    /// What this version says about a dotted path.
    #[must_use]
    pub fn lookup(&'static self, path: &str) -> Lookup {
        let Some((module, name)) = path.rsplit_once('.') else { return Lookup::Undescribed };
        match self.modules.get(module) {
            Some(members) => members.get(name).map_or(Lookup::Absent, Lookup::Found),
            None => Lookup::Undescribed,
        }
    }
}
