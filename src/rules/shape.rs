//! A flow's shape, and how two of them differ. Patterns stay the text that PostgreSQL wrote: whether two of them are
//! equal is asked from outside.

use std::collections::BTreeSet;
use std::ops::Deref;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::Error;

#[derive(Deserialize)]
pub struct Shape {
    steps: Option<Vec<Object<StepShape>>>,
    pub options: Option<Object<Options>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepShape {
    pub slug: Option<String>,
    pub step_type: Option<String>,
    dependencies: Option<Vec<String>>,
    pub when_unmet: Option<String>,
    pub when_exhausted: Option<String>,
    pub required_input_pattern: Option<Box<RawValue>>,
    pub forbidden_input_pattern: Option<Box<RawValue>>,
    pub options: Option<Object<Options>>,
}

/// Attempts, and seconds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Options {
    pub max_attempts: Option<i32>,
    pub base_delay: Option<i32>,
    pub timeout: Option<i32>,
    pub start_delay: Option<i32>,
}

/// `{"defined": false}` or `{"defined": true, "value": ...}`.
#[derive(Deserialize)]
pub struct Pattern {
    defined: bool,
    value: Option<Box<RawValue>>,
}

/// A value that is written as a JSON object: serde alone would take an array of its fields, too.
pub struct Object<T>(T);

impl<T> Deref for Object<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        object(raw.get()).map(Self).map_err(D::Error::custom)
    }
}

fn object<T: DeserializeOwned>(text: &str) -> Result<T, serde_json::Error> {
    if !text.trim_start().starts_with('{') {
        return Err(serde_json::Error::custom("an object was expected"));
    }
    serde_json::from_str(text)
}

fn parse_object<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    object(text).map_err(|error| Error::ShapeInvalid {
        why: error.to_string(),
    })
}

pub fn parse(text: &str) -> Result<Shape, Error> {
    parse_object(text)
}

impl Shape {
    pub fn steps(&self) -> &[Object<StepShape>] {
        self.steps.as_deref().unwrap_or_default()
    }

    /// The first slug that two steps have.
    pub fn repeated_step(&self) -> Option<&str> {
        let mut known = BTreeSet::new();
        let mut slugs = self.steps().iter().map(|step| step.slug());
        slugs.find(|slug| !known.insert(*slug))
    }
}

impl StepShape {
    /// Each dependency once, in order.
    pub fn sorted_dependencies(&self) -> Vec<&str> {
        let mut slugs: Vec<&str> = self
            .dependencies
            .iter()
            .flatten()
            .map(String::as_str)
            .collect();
        slugs.sort_unstable();
        slugs.dedup();
        slugs
    }

    fn slug(&self) -> &str {
        self.slug.as_deref().unwrap_or_default()
    }
}

impl Pattern {
    pub fn parse(raw: &RawValue) -> Result<Self, Error> {
        parse_object(raw.get())
    }

    /// The value of a defined pattern, none for a missing one. A defined one without value is JSON null, which the
    /// table refuses.
    pub fn value(self) -> Result<Option<String>, Error> {
        match (self.defined, self.value) {
            (true, Some(value)) => Ok(Some(value.get().to_string())),
            (true, None) => Ok(Some("null".to_string())),
            (false, None) => Ok(None),
            (false, Some(_)) => Err(Error::ShapeInvalid {
                why: "a pattern that is not defined has a value".to_string(),
            }),
        }
    }
}

/// What differs between two shapes, in words; options never do. `same` tells whether two patterns, as texts, are equal.
pub fn differences(
    first: &Shape,
    second: &Shape,
    same: impl Fn(&str, &str) -> bool,
) -> Vec<String> {
    let (first, second) = (first.steps(), second.steps());
    let mut found = Vec::new();
    if first.len() != second.len() {
        found.push(format!(
            "Step count differs: {} vs {}",
            first.len(),
            second.len()
        ));
    }
    for index in 0..first.len().max(second.len()) {
        match (first.get(index), second.get(index)) {
            (Some(a), Some(b)) => {
                found.extend(
                    step_differences(a, b, &same)
                        .into_iter()
                        .map(|what| format!("Step at index {index}: {what}")),
                );
            }
            (None, Some(b)) => {
                found.push(format!(
                    "Step at index {index}: missing in first shape (second has '{}')",
                    b.slug()
                ));
            }
            (Some(a), None) => {
                found.push(format!(
                    "Step at index {index}: missing in second shape (first has '{}')",
                    a.slug()
                ));
            }
            (None, None) => {}
        }
    }
    found
}

fn step_differences(
    a: &StepShape,
    b: &StepShape,
    same: &impl Fn(&str, &str) -> bool,
) -> Vec<String> {
    [
        word("slug", &a.slug, &b.slug),
        word("type", &a.step_type, &b.step_type),
        dependencies(&a.sorted_dependencies(), &b.sorted_dependencies()),
        word("whenUnmet", &a.when_unmet, &b.when_unmet),
        word("whenExhausted", &a.when_exhausted, &b.when_exhausted),
        pattern(
            "requiredInputPattern",
            &a.required_input_pattern,
            &b.required_input_pattern,
            same,
        ),
        pattern(
            "forbiddenInputPattern",
            &a.forbidden_input_pattern,
            &b.forbidden_input_pattern,
            same,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A word differs only where both shapes say one.
fn word(name: &str, a: &Option<String>, b: &Option<String>) -> Option<String> {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    (a != b).then(|| format!("{name} differs '{a}' vs '{b}'"))
}

fn dependencies(a: &[&str], b: &[&str]) -> Option<String> {
    (a != b).then(|| {
        format!(
            "dependencies differ [{}] vs [{}]",
            a.join(", "),
            b.join(", ")
        )
    })
}

fn pattern(
    name: &str,
    a: &Option<Box<RawValue>>,
    b: &Option<Box<RawValue>>,
    same: &impl Fn(&str, &str) -> bool,
) -> Option<String> {
    let equal = match (a, b) {
        (Some(a), Some(b)) => same(a.get(), b.get()),
        (a, b) => a.is_none() && b.is_none(),
    };
    let text =
        |pattern: &Option<Box<RawValue>>| pattern.as_deref().map_or("", RawValue::get).to_string();
    (!equal).then(|| format!("{name} differs '{}' vs '{}'", text(a), text(b)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{differences, parse};

    fn compare(first: &str, second: &str) -> Vec<String> {
        differences(&parse(first).unwrap(), &parse(second).unwrap(), |a, b| {
            a == b
        })
    }

    #[test]
    fn steps_that_one_shape_lacks_are_named_with_the_side() {
        let (one, two) = (
            r#"{"steps": [{"slug": "a"}]}"#,
            r#"{"steps": [{"slug": "a"}, {"slug": "b"}]}"#,
        );
        assert_eq!(
            compare(one, two),
            [
                "Step count differs: 1 vs 2",
                "Step at index 1: missing in first shape (second has 'b')"
            ]
        );
        assert_eq!(
            compare(two, one),
            [
                "Step count differs: 2 vs 1",
                "Step at index 1: missing in second shape (first has 'b')"
            ]
        );
    }

    #[test]
    fn a_step_differs_by_slug_type_dependencies_modes_and_patterns_in_this_order() {
        let first = r#"{"steps": [{"slug": "a", "stepType": "map", "dependencies": ["y", "x"], "whenUnmet": "skip",
            "whenExhausted": "fail", "requiredInputPattern": {"defined": false}}]}"#;
        let second = r#"{"steps": [{"slug": "b", "stepType": "single", "dependencies": ["x"], "whenUnmet": "fail",
            "whenExhausted": "skip", "requiredInputPattern": {"defined": true, "value": {"a": 1}},
            "forbiddenInputPattern": {"defined": false}}]}"#;
        assert_eq!(
            compare(first, second),
            [
                "Step at index 0: slug differs 'a' vs 'b'",
                "Step at index 0: type differs 'map' vs 'single'",
                "Step at index 0: dependencies differ [x, y] vs [x]",
                "Step at index 0: whenUnmet differs 'skip' vs 'fail'",
                "Step at index 0: whenExhausted differs 'fail' vs 'skip'",
                "Step at index 0: requiredInputPattern differs '{\"defined\": false}' vs \
                 '{\"defined\": true, \"value\": {\"a\": 1}}'",
                "Step at index 0: forbiddenInputPattern differs '' vs '{\"defined\": false}'",
            ]
        );
    }

    #[test]
    fn options_and_what_only_one_side_says_never_differ() {
        let first = r#"{"steps": [{"slug": "a", "stepType": "map", "options": {"timeout": 5}}], "options": {"timeout": 1}}"#;
        assert_eq!(
            compare(first, r#"{"steps": [{"dependencies": []}]}"#),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_shape_and_its_steps_and_options_are_objects() {
        for text in [
            "[[], null]",
            r#"{"steps": [["a"]]}"#,
            r#"{"steps": [{"options": [1, 2]}]}"#,
            r#"{"options": [1]}"#,
            "7",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
