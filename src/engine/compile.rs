//! Compilation: a flow's definition as one shape, created, compared, or made anew.

use crate::datum::Jsonb;
use crate::engine::definition;
use crate::error::Error;
use crate::rules::shape::{self, Pattern, Shape, StepShape};
use crate::store::flows::{self, FlowOptions};
use crate::store::steps::{self, NewStep};

/// What became of a flow that was to be compiled.
#[derive(serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Compiled,
    Verified,
    Recompiled,
    Mismatch,
}

#[derive(serde::Serialize)]
struct Compilation {
    status: Status,
    differences: Vec<String>,
}

/// Creates the flow when it is new, else compares; a different one is made anew where `may_recompile`.
pub fn ensure(flow_slug: &str, shape: Jsonb, may_recompile: bool) -> Result<Jsonb, Error> {
    flows::lock_definition(Some(flow_slug))?;
    let shape_text = shape.to_text();
    let wanted = shape::parse(&shape_text)?;
    let result = if !flows::exists(flow_slug)? {
        create_flow(flow_slug, &wanted)?;
        Compilation {
            status: Status::Compiled,
            differences: Vec::new(),
        }
    } else {
        let stored_text = steps::shape(flow_slug)?.to_text();
        let differences = differences(&wanted, &shape::parse(&stored_text)?);
        let status = match (differences.is_empty(), may_recompile) {
            (true, _) => Status::Verified,
            (false, false) => Status::Mismatch,
            (false, true) => {
                definition::delete_flow(flow_slug)?;
                create_flow(flow_slug, &wanted)?;
                Status::Recompiled
            }
        };
        Compilation {
            status,
            differences,
        }
    };
    let text = serde_json::to_string(&result).map_err(|_| Error::Internal {
        what: "a result is no JSON",
    })?;
    Ok(Jsonb::parse(&text))
}

/// What differs between two shapes, with patterns compared as jsonb.
pub fn differences(first: &Shape, second: &Shape) -> Vec<String> {
    shape::differences(first, second, |a, b| {
        Jsonb::parse(a).equals(Jsonb::parse(b))
    })
}

/// Creates a flow with its steps in the shape's order. A step named twice is an error: what is stored once would never
/// be verified.
pub fn create_flow(flow_slug: &str, shape: &Shape) -> Result<(), Error> {
    if let Some(slug) = shape.repeated_step() {
        return Err(Error::ShapeInvalid {
            why: format!("it names step \"{slug}\" twice"),
        });
    }
    let options = shape.options.as_ref();
    definition::create_flow(
        Some(flow_slug),
        FlowOptions {
            max_attempts: options.and_then(|o| o.max_attempts),
            base_delay: options.and_then(|o| o.base_delay),
            timeout: options.and_then(|o| o.timeout),
        },
    )?;
    for step in shape.steps() {
        add_step(flow_slug, step)?;
    }
    Ok(())
}

fn add_step(flow_slug: &str, step: &StepShape) -> Result<(), Error> {
    let options = step.options.as_ref();
    let new = NewStep {
        flow_slug: Some(flow_slug),
        step_slug: step.slug.as_deref(),
        max_attempts: options.and_then(|o| o.max_attempts),
        base_delay: options.and_then(|o| o.base_delay),
        timeout: options.and_then(|o| o.timeout),
        start_delay: options.and_then(|o| o.start_delay),
        step_type: step.step_type.as_deref().unwrap_or("single"),
        required_input_pattern: pattern(step.required_input_pattern.as_deref())?,
        forbidden_input_pattern: pattern(step.forbidden_input_pattern.as_deref())?,
        when_unmet: Some(step.when_unmet.as_deref().unwrap_or("skip")),
        when_exhausted: Some(step.when_exhausted.as_deref().unwrap_or("fail")),
    };
    let deps = step
        .sorted_dependencies()
        .into_iter()
        .map(|slug| Some(slug.to_string()))
        .collect();
    definition::add_step(&new, deps).map(drop)
}

/// The pattern's value, as it stands in the shape.
fn pattern(raw: Option<&serde_json::value::RawValue>) -> Result<Option<Jsonb>, Error> {
    let Some(raw) = raw else { return Ok(None) };
    Ok(Pattern::parse(raw)?
        .value()?
        .map(|value| Jsonb::parse(&value)))
}
