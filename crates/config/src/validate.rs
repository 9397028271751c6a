//! Checks settings against their schema, with messages that name the key and what was probably meant.

use std::sync::LazyLock;

use serde_json::Value;

use super::{Settings, nearest, reference};

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SettingsProblem {
    /// Keys and indices from the top to the place.
    pub(super) path: Vec<String>,
    /// Whether the last key is at fault, rather than its value.
    pub(super) at_key: bool,
    pub(super) message: String,
}

impl SettingsProblem {
    fn value(path: &[String], message: impl Into<String>) -> Self {
        Self { path: path.to_vec(), at_key: false, message: message.into() }
    }
}

static SCHEMA: LazyLock<Value> = LazyLock::new(reference::schema);

/// A setting whose texts mean something that these types do not know, such as the code of a rule.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The keys that lead to the setting, from the top: a text or a list of texts.
    pub key: &'static [&'static str],
    /// Says what is wrong with a text, and what was probably meant.
    pub check: fn(&str) -> Result<(), String>,
}

/// The settings that `value` spells out.
pub(super) fn settings(value: &Value, checks: &[Check]) -> Result<Settings, SettingsProblem> {
    matches_schema(value, &SCHEMA, &mut Vec::new())?;
    let settings: Settings =
        serde_json::from_value(value.clone()).map_err(|error| SettingsProblem::value(&[], error.to_string()))?;
    for check in checks {
        passes(value, check)?;
    }
    values(&settings)?;
    Ok(settings)
}

/// Whether the texts of one setting pass a check.
fn passes(settings: &Value, check: &Check) -> Result<(), SettingsProblem> {
    let path: Vec<String> = check.key.iter().map(|key| (*key).to_owned()).collect();
    let value = check.key.iter().fold(settings, |value, key| &value[*key]);
    let of = |path: &[String], text: &str| (check.check)(text).map_err(|message| SettingsProblem::value(path, message));
    if let Some(text) = value.as_str() {
        of(&path, text)?;
    }
    for (index, entry) in value.as_array().into_iter().flatten().enumerate() {
        of(&[path.as_slice(), &[index.to_string()]].concat(), entry.as_str().unwrap_or_default())?;
    }
    Ok(())
}

/// What neither the schema nor the checks of single settings can say.
fn values(settings: &Settings) -> Result<(), SettingsProblem> {
    let path = |parts: &[&str]| parts.iter().map(|part| (*part).to_owned()).collect::<Vec<_>>();
    let evaluator = &settings.evaluator;
    if !evaluator.pool.is_empty() && !evaluator.command.is_empty() {
        let message = "`evaluator.pool` and `evaluator.command` are both set: keep one";
        return Err(SettingsProblem::value(&path(&["evaluator", "pool"]), message));
    }
    if let Some(address) = &settings.model.base_url {
        let good = url::Url::parse(address).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if !good {
            let message = "`model.base-url` must be an address such as `http://localhost:11434/v1`";
            return Err(SettingsProblem::value(&path(&["model", "base-url"]), message));
        }
    }
    Ok(())
}

fn matches_schema(value: &Value, schema: &'static Value, path: &mut Vec<String>) -> Result<(), SettingsProblem> {
    let schema = resolve(schema);
    let allowed = types(schema);
    if !allowed.is_empty() && !allowed.iter().any(|kind| is_a(value, kind)) {
        let wanted = allowed.iter().find(|kind| **kind != "null").map_or("null", |kind| described(kind));
        let message = format!("`{}` must be {wanted}, not {}", path.join("."), described(kind_of(value)));
        return Err(SettingsProblem::value(path, message));
    }
    if let (Some(minimum), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < minimum
    {
        return Err(SettingsProblem::value(path, format!("`{}` must be at least {minimum}", path.join("."))));
    }
    if let Some(maximum) =
        schema["maximum"].as_f64().filter(|maximum| value.as_f64().is_some_and(|number| number > *maximum))
    {
        return Err(SettingsProblem::value(path, format!("`{}` must be at most {maximum}", path.join("."))));
    }
    if let (Some(known), Some(word)) = (schema["enum"].as_array(), value.as_str())
        && !known.iter().any(|known| known == word)
    {
        let known: Vec<String> = known.iter().filter_map(|known| Some(format!("`{}`", known.as_str()?))).collect();
        return Err(SettingsProblem::value(path, format!("`{}` must be one of {}", path.join("."), known.join(", "))));
    }
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                path.push(key.clone());
                let Some(property) = schema["properties"].get(key) else { return Err(unknown_key(path, schema)) };
                matches_schema(value, property, path)?;
                path.pop();
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(index.to_string());
                matches_schema(item, &schema["items"], path)?;
                path.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

fn unknown_key(path: &[String], schema: &Value) -> SettingsProblem {
    let known = || schema["properties"].as_object().into_iter().flat_map(|entries| entries.keys().map(String::as_str));
    let key = path.last().map_or("", String::as_str);
    let hint = match nearest(key, known()) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("known here: {}", known().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    };
    SettingsProblem { path: path.to_vec(), at_key: true, message: format!("unknown key `{}`; {hint}", path.join(".")) }
}

/// The schema itself, or the definition it refers to.
fn resolve(schema: &'static Value) -> &'static Value {
    match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        Some(pointer) => SCHEMA.pointer(pointer).unwrap_or(schema),
        None => schema,
    }
}

fn types(schema: &Value) -> Vec<&str> {
    match &schema["type"] {
        Value::String(kind) => vec![kind],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    kind_of(value) == kind || (kind == "number" && kind_of(value) == "integer")
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn described(kind: &str) -> &'static str {
    match kind {
        "boolean" => "true or false",
        "number" => "a number",
        "integer" => "a whole number",
        "string" => "a text",
        "array" => "a list",
        "object" => "a table",
        _ => "nothing",
    }
}
