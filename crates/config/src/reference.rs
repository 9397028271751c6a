//! The generated descriptions of the settings: the JSON schema and the file of defaults.

use std::fmt::Write as _;

use serde_json::Value;

use super::Settings;

/// The JSON schema of a `warpsmith.toml`.
#[must_use]
pub fn schema() -> Value {
    schemars::schema_for!(Settings).to_value()
}

/// Every setting with its documentation and its default, as a `warpsmith.toml`.
#[must_use]
pub fn default_toml() -> String {
    let schema = schema();
    let mut out = String::from(
        "# Every setting with its default.\n\
         # What you change goes into `warpsmith.toml` at the root of the project, or below `[tool.warpsmith]` in\n\
         # `pyproject.toml`. The nearest such file above a Python file counts, alone.\n",
    );
    write_table(&mut out, &schema, &schema, "");
    out
}

fn write_table(out: &mut String, table: &Value, root: &Value, name: &str) {
    let Some(properties) = table["properties"].as_object() else { return };
    for (key, property) in properties {
        let target = property["$ref"].as_str().and_then(|reference| root.pointer(reference.strip_prefix('#')?));
        out.push('\n');
        comment(out, property["description"].as_str().unwrap_or_default());
        if let Some(target) = target {
            let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
            out.push_str(&format!("[{name}]\n"));
            write_table(out, target, root, &name);
        } else if property["default"].is_null() {
            let example = property.pointer("/examples/0").unwrap_or(&Value::Null);
            let _ = writeln!(out, "# {key} = {example}");
        } else {
            let _ = writeln!(out, "{key} = {}", property["default"]);
        }
    }
}

fn comment(out: &mut String, text: &str) {
    for line in text.lines() {
        let _ = writeln!(out, "# {line}");
    }
}
