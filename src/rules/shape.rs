//! A flow's shape, and how two of them differ. Patterns stay text: their numbers are compared as decimals, never as
//! floating point.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::error::Error;

#[derive(Deserialize)]
pub struct Shape {
    steps: Option<Vec<StepShape>>,
    pub options: Option<Options>,
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
    pub options: Option<Options>,
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

pub fn parse(text: &str) -> Result<Shape, Error> {
    serde_json::from_str(text).map_err(|error| Error::ShapeInvalid {
        why: error.to_string(),
    })
}

impl Shape {
    pub fn steps(&self) -> &[StepShape] {
        self.steps.as_deref().unwrap_or_default()
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
        serde_json::from_str(raw.get()).map_err(|error| Error::ShapeInvalid {
            why: error.to_string(),
        })
    }

    /// The value of a defined pattern; JSON null where it has none, which the table refuses.
    pub fn value(self) -> Option<String> {
        self.defined.then(|| {
            self.value
                .map_or_else(|| "null".to_string(), |value| value.get().to_string())
        })
    }
}

/// What differs between two shapes, in words; options never do.
pub fn differences(first: &Shape, second: &Shape) -> Vec<String> {
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
                    step_differences(a, b)
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

fn step_differences(a: &StepShape, b: &StepShape) -> Vec<String> {
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
        ),
        pattern(
            "forbiddenInputPattern",
            &a.forbidden_input_pattern,
            &b.forbidden_input_pattern,
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

fn pattern(name: &str, a: &Option<Box<RawValue>>, b: &Option<Box<RawValue>>) -> Option<String> {
    let (a, b) = (
        a.as_deref().map_or("", RawValue::get),
        b.as_deref().map_or("", RawValue::get),
    );
    (!same_json(a, b)).then(|| format!("{name} differs '{a}' vs '{b}'"))
}

/// Whether two texts of jsonb are equal values: the same text, or numbers that differ in trailing zeros only.
fn same_json(a: &str, b: &str) -> bool {
    a == b
        || match (
            serde_json::from_str::<Value>(a),
            serde_json::from_str::<Value>(b),
        ) {
            (Ok(a), Ok(b)) => same_value(&a, &b),
            _ => false,
        }
}

fn same_value(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => decimal(a) == decimal(b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_value(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| same_value(a, b)))
        }
        _ => a == b,
    }
}

/// PostgreSQL writes numbers without exponents, so equal ones differ in trailing zeros at most.
fn decimal(number: &Number) -> String {
    let text = number.to_string();
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_string(),
        false => text,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::{differences, parse};

    fn compare(first: &str, second: &str) -> Vec<String> {
        differences(&parse(first).unwrap(), &parse(second).unwrap())
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
    fn numbers_in_patterns_are_equal_as_decimals_and_never_rounded() {
        let with = |n: &str| {
            format!(
                r#"{{"steps": [{{"requiredInputPattern": {{"defined": true, "value": {{"n": [{n}]}}}}}}]}}"#
            )
        };
        assert_eq!(compare(&with("1.10"), &with("1.1")), Vec::<String>::new());
        assert_eq!(
            compare(
                &with("12345678901234567890.1"),
                &with("12345678901234567890.2")
            )
            .len(),
            1
        );
    }
}
