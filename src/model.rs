//! Value types that the engine speaks in. No SQL, no decisions.

use pgrx::Uuid;

use crate::error::Error;

/// A queue's canonical name: lower case. PGMQ may list the same queue under another spelling.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueName(String);

/// PGMQ's limit on a queue name, in characters.
const QUEUE_NAME_LIMIT: usize = 47;

impl QueueName {
    /// The default queue of a flow, and the canonical form of any spelling of a queue.
    pub fn normalized(name: &str) -> Self {
        Self(name.to_lowercase())
    }

    /// A name as it is stored, already canonical.
    pub fn stored(name: String) -> Self {
        Self(name)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn is_too_long(&self) -> bool {
        self.0.chars().count() > QUEUE_NAME_LIMIT
    }

    /// Whether `name` may be stored: canonical, and nothing in it that PGMQ refuses.
    pub fn is_valid(name: &str) -> bool {
        !name.is_empty()
            && name.chars().count() <= QUEUE_NAME_LIMIT
            && name.to_lowercase() == name
            && !name.contains(['$', ';', '\''])
            && !name.contains("--")
    }
}

/// A message's identity: ids are unique inside one queue only.
#[derive(Clone, Debug)]
pub struct MessageRef {
    pub queue: QueueName,
    pub id: i64,
}

/// A task's primary key.
#[derive(Clone, Copy)]
pub struct TaskKey<'a> {
    pub run_id: Uuid,
    pub step_slug: &'a str,
    pub task_index: i32,
}

impl<'a> TaskKey<'a> {
    /// The key that three arguments name; none when one of them is NULL.
    pub fn new(
        run_id: Option<Uuid>,
        step_slug: Option<&'a str>,
        task_index: Option<i32>,
    ) -> Option<Self> {
        Some(Self {
            run_id: run_id?,
            step_slug: step_slug?,
            task_index: task_index?,
        })
    }
}

/// A step that has just started, and where its tasks go.
pub struct StartedStep {
    pub run_id: Uuid,
    pub flow_slug: String,
    pub step_slug: String,
    pub tasks: i32,
    pub step_index: i32,
    pub queue: QueueName,
    /// Seconds until its messages can be read.
    pub start_delay: i32,
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $what:literal: $($variant:ident = $word:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($variant),+ }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl std::str::FromStr for $name {
            type Err = Error;
            fn from_str(word: &str) -> Result<Self, Error> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(Error::UnknownWord { what: $what, value: word.to_string() }),
                }
            }
        }
    };
}

words!(RunStatus, "run status": Started = "started", Completed = "completed", Failed = "failed");
words!(StepStatus, "step status": Created = "created", Started = "started", Completed = "completed",
    Failed = "failed", Skipped = "skipped");
words!(TaskStatus, "task status": Queued = "queued", Started = "started", Completed = "completed",
    Failed = "failed", Skipped = "skipped", Cancelled = "cancelled");
words!(StepType, "step type": Single = "single", Map = "map");
words!(
    /// What happens when a step's condition is not met, or when its attempts are used up.
    Mode, "mode": Fail = "fail", Skip = "skip", SkipCascade = "skip-cascade");

/// A step as a picture shows it; with a state when the picture is of a run.
pub struct GraphStep {
    pub step_index: i32,
    pub step_slug: String,
    pub step_type: StepType,
    /// What happens when its condition is not met; none without a condition.
    pub condition: Option<Mode>,
    /// The step_index of each dependency.
    pub deps: Vec<i32>,
    pub state: Option<GraphState>,
}

/// How far a step of a run is.
pub struct GraphState {
    pub status: StepStatus,
    pub skip_reason: Option<String>,
    /// None while the array of a map is not known.
    pub total_tasks: Option<i32>,
    pub completed_tasks: i64,
    pub retries_count: i64,
    /// From its start to its end, or to now; none before the start.
    pub seconds: Option<f64>,
}
