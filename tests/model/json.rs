//! JSON values as jsonb keeps, compares and prints them. Numbers are compared by their text: the generator never
//! writes one number in two ways.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(String),
    Text(String),
    Array(Vec<Json>),
    /// In jsonb's order of keys; made by [`object`].
    Object(Vec<(String, Json)>),
}

/// An object as jsonb stores it: shorter keys first, then by bytes; the last of equal keys wins.
pub fn object(pairs: impl IntoIterator<Item = (String, Json)>) -> Json {
    let mut kept: Vec<(String, Json)> = Vec::new();
    for (key, value) in pairs {
        kept.retain(|(known, _)| *known != key);
        kept.push((key, value));
    }
    kept.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
    Json::Object(kept)
}

pub fn text(value: &str) -> Json {
    Json::Text(value.to_string())
}

pub fn number(value: usize) -> Json {
    Json::Number(value.to_string())
}

/// A value that may be SQL NULL, where JSON has to stand for it.
pub fn or_null(value: &Option<Json>) -> Json {
    value.clone().unwrap_or(Json::Null)
}

impl Json {
    /// As `jsonb_typeof`.
    pub fn type_name(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Bool(_) => "boolean",
            Json::Number(_) => "number",
            Json::Text(_) => "string",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
        }
    }

    pub fn elements(&self) -> Option<&[Json]> {
        match self {
            Json::Array(elements) => Some(elements),
            _ => None,
        }
    }

    /// `self @> pattern`, for patterns that are objects or arrays at the top.
    pub fn contains(&self, pattern: &Json) -> bool {
        match (self, pattern) {
            (Json::Object(own), Json::Object(wanted)) => wanted.iter().all(|(key, value)| {
                own.iter()
                    .any(|(known, found)| known == key && found.contains(value))
            }),
            (Json::Array(own), Json::Array(wanted)) => wanted
                .iter()
                .all(|value| own.iter().any(|found| found.contains(value))),
            _ => self == pattern,
        }
    }
}

impl fmt::Display for Json {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => to.write_str("null"),
            Json::Bool(value) => write!(to, "{value}"),
            Json::Number(value) => to.write_str(value),
            Json::Text(value) => write!(to, "\"{}\"", escaped(value)),
            Json::Array(elements) => {
                let elements: Vec<_> = elements.iter().map(Json::to_string).collect();
                write!(to, "[{}]", elements.join(", "))
            }
            Json::Object(pairs) => {
                let pairs: Vec<_> = pairs
                    .iter()
                    .map(|(key, value)| format!("\"{}\": {value}", escaped(key)))
                    .collect();
                write!(to, "{{{}}}", pairs.join(", "))
            }
        }
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"")
}
