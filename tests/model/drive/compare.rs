//! What engine and model must agree about after each operation.

use std::collections::BTreeMap;

use crate::behaviour::support::{one, rows};
use crate::random_model::drive::sql::{RUN_LINE, STEP_LINE, TASK_LINE};
use crate::random_model::rules::{Answer, Event, Spot, World};

/// Seconds that may pass between a call and the look at what it hid.
const PATIENCE: i64 = 5;

/// What the engine answered.
#[derive(Default)]
pub struct Seen {
    pub rows: Vec<String>,
    pub warnings: Vec<String>,
}

/// What was seen of a case before.
pub struct Memory {
    queues: Vec<String>,
    events: usize,
    /// When live messages become visible, by queue and id.
    visible_at: BTreeMap<(String, i64), String>,
}

impl Memory {
    pub fn new(queues: Vec<String>) -> Self {
        Self {
            queues,
            events: 0,
            visible_at: BTreeMap::new(),
        }
    }
}

/// Tells the model the ids that PGMQ gave to new messages.
pub fn learn_ids(world: &mut World) {
    let is_new = |at: &Spot| world.task(*at).message.is_none();
    for at in world.spots().into_iter().filter(is_new).collect::<Vec<_>>() {
        let key = world.key(at);
        let id = rows(&format!(
            "select message_id from pgflow.step_tasks where run_id::text like '%{:02x}' \
             and step_slug = '{}' and task_index = {}",
            key.run, key.step, key.index
        ));
        if let Some(id) = id.first().and_then(|id| id.parse().ok()) {
            world.learn(at, id);
        }
    }
    for stray in world
        .strays
        .iter_mut()
        .filter(|stray| stray.message.is_none())
    {
        let newest = format!("select max(msg_id) from pgmq.q_{}", stray.queue);
        stray.message = Some(one(&newest));
    }
}

pub fn all(world: &World, memory: &mut Memory, answer: &Answer, seen: Seen) -> Result<(), String> {
    if let Some(expected) = world.answer_lines(answer) {
        same_lines("answer", expected, seen.rows)?;
    }
    warnings(world, &seen.warnings)?;
    same_lines("state", world.lines(), state(&memory.queues))?;
    events(world, memory)?;
    visibility(world, memory)
}

fn state(queues: &[String]) -> Vec<String> {
    let messages = queues.iter().flat_map(|queue| {
        [("live", "q"), ("archived", "a")].map(|(place, prefix)| {
            format!("select format('{place} message {queue} %s %s', msg_id, message) from pgmq.{prefix}_{queue}")
        })
    });
    let tables = [
        format!("select {RUN_LINE} from pgflow.runs t"),
        format!("select {STEP_LINE} from pgflow.step_states t"),
        format!("select {TASK_LINE} from pgflow.step_tasks t"),
        "select 'broken: ' || b from pgflow_invariants.broken() b".to_string(),
    ];
    let parts: Vec<_> = tables.into_iter().chain(messages).collect();
    rows(&parts.join(" union all "))
}

/// The same lines in whatever order.
fn same_lines(what: &str, mut expected: Vec<String>, mut found: Vec<String>) -> Result<(), String> {
    expected.sort();
    found.sort();
    if expected == found {
        return Ok(());
    }
    let mut only_found = Vec::new();
    for line in found {
        match expected.iter().position(|known| *known == line) {
            Some(at) => drop(expected.remove(at)),
            None => only_found.push(format!("  engine: {line}")),
        }
    }
    only_found.extend(expected.iter().map(|line| format!("  model:  {line}")));
    only_found.sort_by_key(|line| line[10..].to_string());
    Err(format!("{what} differs:\n{}", only_found.join("\n")))
}

/// One WARNING for each kind of message that cannot be claimed, with the ids.
fn warnings(world: &World, found: &[String]) -> Result<(), String> {
    let print = |ids: &Vec<i64>| format!("{ids:?}");
    let kinds = world.warned.iter().filter(|ids| !ids.is_empty());
    let ids_in = |warning: &String| {
        let words = warning.split(|letter: char| !letter.is_ascii_digit());
        let mut ids: Vec<i64> = words.filter_map(|word| word.parse().ok()).collect();
        ids.sort_unstable();
        print(&ids)
    };
    same_lines(
        "ids in warnings",
        kinds.map(print).collect(),
        found.iter().map(ids_in).collect(),
    )
}

/// The same events; a step's after those of the steps it depends on.
fn events(world: &World, memory: &mut Memory) -> Result<(), String> {
    let found = rows(&format!(
        "select format('%s %s %s %s', topic, private, event, \
         (select jsonb_object_agg(key, case when key ~ '_at$' and value::text ~ '^\"20' then '\"TIME\"' else value end) \
          from jsonb_each(payload))) from realtime.sent order by id offset {}",
        memory.events
    ));
    memory.events += found.len();
    let expected: Vec<_> = world.events.iter().map(Event::line).collect();
    same_lines("events", expected.clone(), found.clone())?;
    let in_order = found.iter().filter_map(|line| {
        let at = expected.iter().position(|known| known == line)?;
        world.events.get(at)
    });
    let in_order: Vec<_> = in_order.collect();
    for (at, later) in in_order.iter().enumerate() {
        let earlier = &in_order[..at];
        if let Some(hasty) = earlier
            .iter()
            .find(|hasty| must_follow(world, hasty, later))
        {
            return Err(format!("event {} before {}", hasty.name(), later.name()));
        }
        let is_cause = |event: &&Event| event.kind == "skipped" && depends(world, later, event);
        if later.is_skipped_with_a_dependency()
            && in_order[at..].iter().any(is_cause)
            && !earlier.iter().any(is_cause)
        {
            return Err(format!("event {} before its cause", later.name()));
        }
    }
    Ok(())
}

/// Whether the first event must not be sent before the second.
fn must_follow(world: &World, first: &Event, second: &Event) -> bool {
    if first.run != second.run {
        return false;
    }
    match (&first.step, &second.step) {
        // A step may be skipped with one dependency before another one has gone on.
        (Some(_), Some(_)) => first.kind != "skipped" && depends(world, first, second),
        (None, _) => first.kind == "completed",
        (Some(_), None) => second.kind == "started",
    }
}

/// Whether the first event's step depends on the second's.
fn depends(world: &World, first: &Event, second: &Event) -> bool {
    let (Some(step), Some(dep), Some(run)) = (&first.step, &second.step, world.position(first.run))
    else {
        return false;
    };
    let flow = world.flow(run);
    first.run == second.run
        && flow
            .position(step)
            .is_some_and(|step| flow.steps[step].deps.contains(dep))
}

/// Messages that the operation hid are visible when the model says; all others when they were before.
fn visibility(world: &World, memory: &mut Memory) -> Result<(), String> {
    let parts: Vec<_> = memory
        .queues
        .iter()
        .map(|queue| {
            format!(
                "select format('{queue} %s %s %s', msg_id, \
                 ceil(extract(epoch from vt - clock_timestamp()))::bigint, vt) from pgmq.q_{queue}"
            )
        })
        .collect();
    let mut visible_at = BTreeMap::new();
    for line in rows(&parts.join(" union all ")) {
        let mut words = line.splitn(4, ' ');
        let mut word = || words.next().unwrap_or_default().to_string();
        let queue = word();
        let id: i64 = word().parse().unwrap_or_default();
        let seconds: i64 = word().parse().unwrap_or_default();
        let at = word();
        let hidden = world.hidden.iter().rev().find(|(spot, _)| {
            let task = world.task(*spot);
            task.queue == queue && task.message == Some(id)
        });
        let key = (queue, id);
        match hidden {
            Some((_, 0)) if seconds > 0 => {
                return Err(format!(
                    "message {key:?} is hidden for {seconds} s, not visible"
                ));
            }
            Some((_, expected)) if *expected > 0 => {
                let expected = *expected as i64;
                if seconds > expected || seconds < expected - PATIENCE {
                    return Err(format!(
                        "message {key:?} is hidden for {seconds} s, not {expected} s"
                    ));
                }
            }
            Some(_) => {}
            None => {
                let before = memory.visible_at.get(&key);
                if before.is_some_and(|before| *before != at) {
                    return Err(format!(
                        "message {key:?} was touched: visible {at}, before {before:?}"
                    ));
                }
            }
        }
        visible_at.insert(key, at);
    }
    memory.visible_at = visible_at;
    Ok(())
}
