//! Pictures of flows and runs as Mermaid text.

use crate::model::{GraphState, GraphStep, Mode, StepStatus, StepType};

/// Colours of the states: fill, border, and how the border is drawn.
const CLASSES: [(StepStatus, &str); 5] = [
    (
        StepStatus::Created,
        "fill:#f1f3f5,stroke:#868e96,color:#000",
    ),
    (
        StepStatus::Started,
        "fill:#fff3bf,stroke:#e67700,color:#000",
    ),
    (
        StepStatus::Completed,
        "fill:#d3f9d8,stroke:#2b8a3e,color:#000",
    ),
    (StepStatus::Failed, "fill:#ffe3e3,stroke:#c92a2a,color:#000"),
    (
        StepStatus::Skipped,
        "fill:#f8f9fa,stroke:#868e96,color:#868e96,stroke-dasharray:4",
    ),
];

/// A node for each step and an edge for each dependency; coloured by state where the steps have one. Nodes are named by
/// `step_index`, since a slug can be a word of Mermaid's own, and stand in quotes, where nothing in a slug has a meaning.
pub fn mermaid(steps: &[GraphStep]) -> String {
    let mut lines = vec!["flowchart TD".to_string()];
    lines.extend(steps.iter().map(node));
    for step in steps {
        lines.extend(
            step.deps
                .iter()
                .map(|dep| format!("  s{dep} --> s{}", step.step_index)),
        );
    }
    for (status, style) in CLASSES {
        if steps
            .iter()
            .any(|step| step.state.as_ref().is_some_and(|s| s.status == status))
        {
            lines.push(format!("  classDef {status} {style}"));
        }
    }
    lines.join("\n")
}

fn node(step: &GraphStep) -> String {
    let mut label = vec![step.step_slug.clone()];
    match &step.state {
        Some(state) => label.extend(progress(step.step_type, state)),
        None if step.step_type == StepType::Map => label.push("a task for each element".into()),
        None => {}
    }
    if let Some(when_unmet) = step.condition {
        label.push(format!("condition, else {}", words(when_unmet)));
    }
    let label = label.join("<br/>");
    let (open, close) = match step.step_type {
        StepType::Single => ("[", "]"),
        StepType::Map => ("[[", "]]"),
    };
    let class = step
        .state
        .as_ref()
        .map(|state| format!(":::{}", state.status))
        .unwrap_or_default();
    format!("  s{}{open}\"{label}\"{close}{class}", step.step_index)
}

/// What a step has done so far, line by line: its status, its tasks and retries, its time.
fn progress(step_type: StepType, state: &GraphState) -> Vec<String> {
    let mut lines = vec![match &state.skip_reason {
        Some(reason) => format!("{}: {reason}", state.status),
        None => state.status.to_string(),
    }];
    let mut work = Vec::new();
    if let (StepType::Map, Some(total)) = (step_type, state.total_tasks) {
        work.push(format!(
            "{}/{total} task{}",
            state.completed_tasks,
            if total == 1 { "" } else { "s" }
        ));
    }
    match state.retries_count {
        0 => {}
        1 => work.push("1 retry".into()),
        several => work.push(format!("{several} retries")),
    }
    if !work.is_empty() {
        lines.push(work.join(", "));
    }
    lines.extend(state.seconds.map(time));
    lines
}

fn words(when_unmet: Mode) -> &'static str {
    match when_unmet {
        Mode::Fail => "fail the run",
        Mode::Skip => "skip",
        Mode::SkipCascade => "skip with all that follows",
    }
}

fn time(seconds: f64) -> String {
    if seconds < 60.0 {
        return format!("{seconds:.2} s");
    }
    let minutes = (seconds / 60.0) as u64;
    match minutes / 60 {
        0 => format!("{minutes} min {} s", seconds as u64 % 60),
        hours => format!("{hours} h {} min", minutes % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step_index: i32, step_slug: &str, step_type: StepType, deps: &[i32]) -> GraphStep {
        GraphStep {
            step_index,
            step_slug: step_slug.into(),
            step_type,
            condition: None,
            deps: deps.to_vec(),
            state: None,
        }
    }

    fn state(status: StepStatus) -> GraphState {
        GraphState {
            status,
            skip_reason: None,
            total_tasks: Some(1),
            completed_tasks: 0,
            retries_count: 0,
            seconds: None,
        }
    }

    /// The node of a step without dependencies in this state.
    fn node_in(step_type: StepType, state: GraphState) -> String {
        node(&GraphStep {
            state: Some(state),
            ..step(0, "a", step_type, &[])
        })
    }

    #[test]
    fn a_flow_has_a_node_for_each_step_and_an_edge_for_each_dependency() {
        let steps = [
            step(0, "a", StepType::Single, &[]),
            step(1, "b", StepType::Single, &[0]),
            step(2, "c", StepType::Map, &[0]),
            step(3, "d", StepType::Single, &[1, 2]),
        ];
        assert_eq!(
            mermaid(&steps),
            "flowchart TD
  s0[\"a\"]
  s1[\"b\"]
  s2[[\"c<br/>a task for each element\"]]
  s3[\"d\"]
  s0 --> s1
  s0 --> s2
  s1 --> s3
  s2 --> s3"
        );
    }

    #[test]
    fn a_flow_without_steps_is_an_empty_picture() {
        assert_eq!(mermaid(&[]), "flowchart TD");
    }

    /// `end` as the name of a node breaks a picture, and `__proto__` a program that draws it.
    #[test]
    fn a_slug_stands_only_in_quotes() {
        for slug in ["end", "graph", "subgraph", "style", "x", "o", "__proto__"] {
            let steps = [
                step(0, slug, StepType::Single, &[]),
                step(1, "after", StepType::Single, &[0]),
            ];
            assert_eq!(
                mermaid(&steps),
                format!("flowchart TD\n  s0[\"{slug}\"]\n  s1[\"after\"]\n  s0 --> s1")
            );
        }
    }

    #[test]
    fn a_condition_says_what_happens_when_it_is_not_met() {
        let node_of = |condition| {
            node(&GraphStep {
                condition: Some(condition),
                ..step(0, "a", StepType::Single, &[])
            })
        };
        assert_eq!(
            [Mode::Fail, Mode::Skip, Mode::SkipCascade].map(node_of),
            [
                "  s0[\"a<br/>condition, else fail the run\"]",
                "  s0[\"a<br/>condition, else skip\"]",
                "  s0[\"a<br/>condition, else skip with all that follows\"]",
            ]
        );
    }

    #[test]
    fn each_state_has_a_colour_of_its_own() {
        for (at, (status, style)) in CLASSES.iter().enumerate() {
            let picture = mermaid(&[GraphStep {
                state: Some(state(*status)),
                ..step(0, "a", StepType::Single, &[])
            }]);
            assert_eq!(
                picture,
                format!("flowchart TD\n  s0[\"a<br/>{status}\"]:::{status}\n  classDef {status} {style}")
            );
            assert!(CLASSES[..at].iter().all(|(_, other)| other != style));
        }
    }

    #[test]
    fn a_map_counts_its_tasks_once_their_number_is_known() {
        let node_of = |(total_tasks, completed_tasks)| {
            let state = GraphState {
                total_tasks,
                completed_tasks,
                ..state(StepStatus::Started)
            };
            node_in(StepType::Map, state)
        };
        assert_eq!(
            [(None, 0), (Some(1), 0), (Some(13), 7)].map(node_of),
            [
                "  s0[[\"a<br/>started\"]]:::started",
                "  s0[[\"a<br/>started<br/>0/1 task\"]]:::started",
                "  s0[[\"a<br/>started<br/>7/13 tasks\"]]:::started",
            ]
        );
    }

    #[test]
    fn retries_reasons_and_times_are_shown() {
        let node_of = |retries_count| {
            let state = GraphState {
                skip_reason: Some("handler_failed".into()),
                retries_count,
                seconds: Some(0.517),
                ..state(StepStatus::Skipped)
            };
            node_in(StepType::Single, state)
        };
        assert_eq!(
            [0, 1, 2].map(node_of),
            [
                "  s0[\"a<br/>skipped: handler_failed<br/>0.52 s\"]:::skipped",
                "  s0[\"a<br/>skipped: handler_failed<br/>1 retry<br/>0.52 s\"]:::skipped",
                "  s0[\"a<br/>skipped: handler_failed<br/>2 retries<br/>0.52 s\"]:::skipped",
            ]
        );
    }

    #[test]
    fn long_times_are_told_in_minutes_and_hours() {
        assert_eq!(
            [0.0, 59.99, 60.0, 3599.9, 3600.0, 90_061.0].map(time),
            [
                "0.00 s",
                "59.99 s",
                "1 min 0 s",
                "59 min 59 s",
                "1 h 0 min",
                "25 h 1 min"
            ]
        );
    }
}
