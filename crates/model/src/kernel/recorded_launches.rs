//! Launches that were observed when the user's program ran.

/// An observed launch of a kernel with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedLaunch {
    /// The kernel's name.
    pub kernel: String,
    /// The arguments by parameter name.
    pub arguments: Vec<(String, RecordedArgument)>,
    /// The number of programs along each axis of the grid.
    pub grid: Vec<i128>,
    /// Launch options that were passed, such as `num_warps`.
    pub options: Vec<(String, i64)>,
}

/// The value that was passed for a parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedArgument {
    /// A tensor with elements of this type (`fp16`, `i64`); `None` for element types that kernels do not have.
    Pointer(Option<&'static str>),
    /// An integer.
    Integer(i128),
    /// `True` or `False`.
    Bool(bool),
    /// A float.
    Float(f64),
    /// `None`.
    None,
    /// A value of another type.
    Other,
}

impl RecordedLaunch {
    /// The integer that was passed for the parameter `name`; `None` for values of other types.
    #[must_use]
    pub fn integer(&self, name: &str) -> Option<i128> {
        match self.passed(name)? {
            RecordedArgument::Integer(value) => Some(*value),
            _ => None,
        }
    }

    /// The value that was passed for the parameter `name`.
    #[must_use]
    pub fn passed(&self, name: &str) -> Option<&RecordedArgument> {
        self.arguments.iter().find(|(known, _)| known == name).map(|(_, passed)| passed)
    }

    /// The text that a signature comment (`# warpsmith: signature …`) has for a parameter with this value; `None` where
    /// it cannot express the value.
    #[must_use]
    pub fn text(&self, name: &str, is_constexpr: bool) -> Option<String> {
        Some(match self.passed(name)? {
            RecordedArgument::Pointer(element) => format!("*{}", (*element)?),
            RecordedArgument::Integer(value) if is_constexpr || *value == 1 => value.to_string(),
            RecordedArgument::Integer(value) if i32::try_from(*value).is_ok() => format!("i32={value}"),
            RecordedArgument::Integer(value) => format!("i64={value}"),
            RecordedArgument::Bool(value) if is_constexpr => if *value { "True" } else { "False" }.to_owned(),
            RecordedArgument::Bool(_) => "i1".to_owned(),
            RecordedArgument::Float(value) if is_constexpr => format!("{value:?}"),
            RecordedArgument::Float(_) => "fp32".to_owned(),
            RecordedArgument::None => "None".to_owned(),
            RecordedArgument::Other => return None,
        })
    }
}
