//! The table of one release: the modules of `triton.language` with their members, and the launch options.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::Version;

/// The public interface of one release of Triton.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Table {
    /// The release from which the table was generated.
    pub version: Version,
    /// Described modules by full name (`triton.language`, `triton.language.math`, …) with their members by name.
    pub modules: BTreeMap<String, BTreeMap<String, Member>>,
    /// Keywords that a launch accepts besides the kernel's parameters (`num_warps`, …), over all back ends.
    pub launch_options: Vec<String>,
}

/// A member of a module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The kind of the member.
    pub kind: MemberKind,
    /// The parameters of a callable member, without those that are internal to the compiler (`_semantic`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub params: Vec<MemberParameter>,
}

/// The kind of a member.
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

/// A parameter of a callable member. In a table it is written as in Python: `mask=None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct MemberParameter {
    /// The name, with `*` or `**` for a variadic parameter. A `*` alone precedes the keyword-only parameters.
    pub name: String,
    /// The source text of its default; `None` without a default.
    pub default: Option<String>,
}

impl From<String> for MemberParameter {
    fn from(text: String) -> Self {
        match text.split_once('=') {
            Some((name, default)) => Self { name: name.to_owned(), default: Some(default.to_owned()) },
            None => Self { name: text, default: None },
        }
    }
}

impl From<MemberParameter> for String {
    fn from(MemberParameter { name, default }: MemberParameter) -> Self {
        default.map_or_else(|| name.clone(), |default| format!("{name}={default}"))
    }
}

/// The result of looking up a path in a table.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// The release has this member.
    Found(&'static Member),
    /// The module is described and does not have it.
    Absent,
    /// The table does not cover the path (`triton.language.extra`, members of classes and values).
    Undescribed,
}

macro_rules! tables {
    ($(($major:literal, $minor:literal, $patch:literal),)*) => {
        /// The releases that have a table, oldest first.
        const VERSIONS: &[Version] = &[$(Version { major: $major, minor: $minor, patch: $patch },)*];

        /// Each table is parsed on first use.
        static TABLES: [LazyLock<Table>; VERSIONS.len()] = [$(LazyLock::new(|| {
            let text = include_str!(concat!("../../../../config/api/triton-", $major, ".", $minor, ".json"));
            serde_json::from_str(text).expect("the tables are generated and tested")
        }),)*];
    };
}

// The last release of each minor version. To add one, write its table first: `cargo xtask api 3.10.0`.
tables! {
    (3, 1, 0),
    (3, 2, 0),
    (3, 3, 1),
    (3, 4, 0),
    (3, 5, 1),
    (3, 6, 0),
    (3, 7, 1),
    (3, 8, 0),
    (3, 9, 0),
}

impl Table {
    /// All tables, oldest first. The first use parses all of them (two milliseconds).
    #[must_use]
    pub fn all() -> &'static [&'static Table] {
        static ALL: LazyLock<Vec<&'static Table>> = LazyLock::new(|| TABLES.iter().map(|table| &**table).collect());
        &ALL
    }

    /// The releases that have a table, oldest first.
    #[must_use]
    pub fn versions() -> &'static [Version] {
        VERSIONS
    }

    /// The table of the newest release.
    #[must_use]
    pub fn newest() -> &'static Table {
        &TABLES[TABLES.len() - 1]
    }

    /// The table of the same minor release, else of the nearest older one, else the oldest.
    #[must_use]
    pub fn nearest(version: Version) -> &'static Table {
        &TABLES[VERSIONS.iter().rposition(|known| known.series() <= version.series()).unwrap_or(0)]
    }

    /// Looks up a dotted path.
    #[must_use]
    pub fn lookup(&'static self, path: &str) -> Lookup {
        let Some((module, name)) = path.rsplit_once('.') else { return Lookup::Undescribed };
        match self.modules.get(module) {
            Some(members) => match members.get(name) {
                Some(member) => Lookup::Found(member),
                // Every module has `__name__`, `__doc__` and similar attributes, which the tables do not list.
                None if name.starts_with("__") => Lookup::Undescribed,
                None => Lookup::Absent,
            },
            None => Lookup::Undescribed,
        }
    }

    /// Whether some back end accepts this keyword of a launch besides the kernel's parameters.
    #[must_use]
    pub fn has_launch_option(&self, name: &str) -> bool {
        self.launch_options.iter().any(|option| option == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_table_is_embedded_with_its_version() {
        let versions: Vec<_> = Table::all().iter().map(|table| table.version).collect();
        assert_eq!(versions, Table::versions());
        assert!(versions.is_sorted());
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../config/api");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), versions.len(), "a table is not embedded");
    }

    #[test]
    fn a_version_finds_the_nearest_table() {
        let nearest = |text: &str| Table::nearest(text.parse().unwrap()).version.to_string();
        assert_eq!(nearest("3.3.0"), "3.3.1");
        assert_eq!(nearest("3.6.0"), "3.6.0");
        assert_eq!(nearest("2.1.0"), "3.1.0");
        assert_eq!(nearest("3.12.0"), Table::newest().version.to_string());
    }

    #[test]
    fn lookup_distinguishes_found_absent_and_undescribed_members() {
        let table = Table::newest();
        let kind = |path: &str| match table.lookup(path) {
            Lookup::Found(member) => Some(member.kind),
            _ => None,
        };
        assert_eq!(kind("triton.language.load"), Some(MemberKind::Builtin));
        assert_eq!(kind("triton.language.softmax"), Some(MemberKind::Jit));
        assert_eq!(kind("triton.language.float32"), Some(MemberKind::Dtype));
        assert_eq!(kind("triton.language.static_range"), Some(MemberKind::Class));
        assert_eq!(kind("triton.language.math"), Some(MemberKind::Module));
        assert_eq!(kind("triton.language.extra"), Some(MemberKind::Module));
        assert_eq!(kind("triton.language.TRITON_MAX_TENSOR_NUMEL"), Some(MemberKind::Value));
        assert_eq!(kind("triton.cdiv"), Some(MemberKind::Function));
        assert_eq!(table.lookup("triton.language.cidv"), Lookup::Absent);
        assert_eq!(table.lookup("triton.language.math.tanh"), Lookup::Absent);
        for path in
            ["triton", "triton.language.__doc__", "triton.language.extra.libdevice", "triton.language.dtype.is_int"]
        {
            assert_eq!(table.lookup(path), Lookup::Undescribed, "{path}");
        }
    }

    #[test]
    fn api_tables_omit_internal_parameters() {
        for table in Table::all() {
            let Lookup::Found(member) = table.lookup("triton.language.load") else { panic!("no load") };
            let texts: Vec<String> = member.params.iter().cloned().map(String::from).collect();
            assert_eq!(texts[..3], ["pointer", "mask=None", "other=None"], "{}", table.version);
            assert!(!texts.iter().any(|text| text.starts_with('_')), "{texts:?}");
            assert!(table.has_launch_option("num_warps") && table.has_launch_option("waves_per_eu"));
        }
    }
}
