//! The manifest of the extension for VS Code: its version and its settings are generated from the code.

use anyhow::Context;
use serde_json::{Map, Value, json};

/// The generated group of settings; the other groups are the extension's own.
const GROUP: &str = "Settings";

/// `manifest` with the version of this package and the settings of `schema`.
pub(crate) fn manifest(manifest: &str, schema: &Value, version: &str) -> anyhow::Result<String> {
    let mut manifest: Value = serde_json::from_str(manifest)?;
    manifest["version"] = json!(version);
    let groups = manifest["contributes"]["configuration"].as_array_mut().context("the manifest has no settings")?;
    let group = groups.iter_mut().find(|group| group["title"] == GROUP).context("the manifest lacks a group")?;
    let mut properties = Map::new();
    add(schema, schema, "warpsmith", &mut properties);
    group["properties"] = Value::Object(properties);
    Ok(format!("{manifest:#}\n"))
}

/// Adds the settings of a table of the schema; those of nested tables get dotted names.
fn add(schema: &Value, table: &Value, prefix: &str, to: &mut Map<String, Value>) {
    for (name, property) in table["properties"].as_object().into_iter().flatten() {
        let key = format!("{prefix}.{}", camel(name));
        let inner = property["$ref"].as_str().and_then(|place| schema.pointer(place.trim_start_matches('#')));
        match inner {
            Some(inner) => add(schema, inner, &key, to),
            None => drop(to.insert(key, setting(property))),
        }
    }
}

/// One setting, with the parts of its schema that the editor supports.
fn setting(property: &Value) -> Value {
    let mut setting = Map::new();
    for key in ["type", "items", "enum", "minimum", "maximum", "default"] {
        if let Some(value) = property.get(key) {
            setting.insert(key.to_owned(), value.clone());
        }
    }
    setting.insert("scope".to_owned(), json!("resource"));
    let description = property["description"].as_str().unwrap_or_default().replace('\n', " ");
    setting.insert("markdownDescription".to_owned(), json!(description));
    Value::Object(setting)
}

/// A name in the editor's convention: `triton-version` becomes `tritonVersion`.
fn camel(name: &str) -> String {
    let mut words = name.split('-');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let mut letters = word.chars();
        let head = letters.next().map(|letter| letter.to_ascii_uppercase());
        name + &head.into_iter().chain(letters).collect::<String>()
    })
}
