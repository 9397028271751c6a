//! What an editor sends, over what the file says.

use serde_json::{Map, Value};

use super::{Check, Settings, SettingsError, validate};

/// `file` with the settings that an editor sent laid over it, key by key. `null` means not set; keys may be written in
/// kebab case (`triton-version`), in camel case (`tritonVersion`) or dotted (`optimize.budget`).
///
/// # Errors
/// [`SettingsError`] when `client` has an unknown key, a wrong type or names an unknown rule.
pub fn merge(file: &Settings, client: &Value, checks: &[Check]) -> Result<Settings, SettingsError> {
    let client = normal(client);
    // Checked alone first: a problem is then the editor's, not the file's.
    validate::settings(&client, checks).map_err(SettingsError::of_client)?;
    let mut merged = serde_json::to_value(file).unwrap_or_default();
    overlay(&mut merged, &client);
    validate::settings(&merged, checks).map_err(SettingsError::of_client)
}

fn overlay(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                overlay(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// Keys in kebab case, dotted keys as tables, without nulls.
fn normal(value: &Value) -> Value {
    let Value::Object(entries) = value else {
        return if value.is_null() { Value::Object(Map::new()) } else { value.clone() };
    };
    let mut out = Value::Object(Map::new());
    for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
        let value = if value.is_object() { normal(value) } else { value.clone() };
        let nested = key.rsplit('.').fold(value, |value, part| Value::Object(Map::from_iter([(kebab(part), value)])));
        overlay(&mut out, &nested);
    }
    out
}

fn kebab(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 2);
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            out.push('-');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
