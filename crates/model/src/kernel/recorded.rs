//! Launches that were seen when the user's program ran.

/// A launch of a kernel, with what it passed.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedLaunch {
    /// The kernel's name.
    pub kernel: String,
    /// What its parameters were given, by name.
    pub arguments: Vec<(String, Passed)>,
    /// How many programs there were along each axis.
    pub grid: Vec<i128>,
    /// Launch options that were passed, such as `num_warps`.
    pub options: Vec<(String, i64)>,
}

/// What a parameter was given.
#[derive(Clone, Debug, PartialEq)]
pub enum Passed {
    /// A tensor of these elements: `fp16`, `i64`; `None` for elements that kernels do not know.
    Pointer(Option<&'static str>),
    /// An integer.
    Integer(i128),
    /// `True` or `False`.
    Bool(bool),
    /// A float.
    Float(f64),
    /// `None`.
    None,
    /// Something else.
    Other,
}

impl RecordedLaunch {
    /// The integer that a parameter was given.
    #[must_use]
    pub fn integer(&self, name: &str) -> Option<i128> {
        match self.passed(name)? {
            Passed::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// What a parameter was given.
    #[must_use]
    pub fn passed(&self, name: &str) -> Option<&Passed> {
        self.arguments.iter().find(|(known, _)| known == name).map(|(_, passed)| passed)
    }

    /// What a signature (`# warpsmith: signature …`) says of a parameter that was given this; `None` where it has no word
    /// for that.
    #[must_use]
    pub fn text(&self, name: &str, is_constexpr: bool) -> Option<String> {
        Some(match self.passed(name)? {
            Passed::Pointer(element) => format!("*{}", (*element)?),
            Passed::Integer(value) if is_constexpr || *value == 1 => value.to_string(),
            Passed::Integer(value) if i32::try_from(*value).is_ok() => format!("i32={value}"),
            Passed::Integer(value) => format!("i64={value}"),
            Passed::Bool(value) if is_constexpr => if *value { "True" } else { "False" }.to_owned(),
            Passed::Bool(_) => "i1".to_owned(),
            Passed::Float(value) if is_constexpr => format!("{value:?}"),
            Passed::Float(_) => "fp32".to_owned(),
            Passed::None => "None".to_owned(),
            Passed::Other => return None,
        })
    }
}
