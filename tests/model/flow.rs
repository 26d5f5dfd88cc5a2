//! A flow's definition, as the model and the engine are both told it.

use crate::random_model::json::Json;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Fail,
    Skip,
    SkipCascade,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Mode::Fail => "fail",
            Mode::Skip => "skip",
            Mode::SkipCascade => "skip-cascade",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Flow {
    pub slug: String,
    pub max_attempts: u32,
    pub base_delay: u32,
    pub timeout: u32,
    /// By step_index; a step depends on earlier ones only.
    pub steps: Vec<StepDefinition>,
}

#[derive(Clone, Debug)]
pub struct StepDefinition {
    pub slug: String,
    pub is_map: bool,
    pub deps: Vec<String>,
    pub required: Option<Json>,
    pub forbidden: Option<Json>,
    pub when_unmet: Mode,
    pub when_exhausted: Mode,
    pub max_attempts: Option<u32>,
    pub base_delay: Option<u32>,
    pub timeout: Option<u32>,
    pub start_delay: Option<u32>,
    /// Another queue than the flow's own: no public call can do this, the fixture updates the step's row.
    pub queue: Option<String>,
}

impl Flow {
    /// The queue of a flow's steps, unless they are routed elsewhere.
    pub fn default_queue(&self) -> String {
        self.slug.to_lowercase()
    }

    pub fn position(&self, slug: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.slug == slug)
    }

    /// Positions of the steps that depend on one.
    pub fn dependents(&self, step: usize) -> Vec<usize> {
        let slug = &self.steps[step].slug;
        (0..self.steps.len())
            .filter(|at| self.steps[*at].deps.contains(slug))
            .collect()
    }

    pub fn queue_of(&self, step: usize) -> String {
        self.steps[step]
            .queue
            .clone()
            .unwrap_or_else(|| self.default_queue())
    }

    pub fn max_attempts_of(&self, step: usize) -> u32 {
        self.steps[step].max_attempts.unwrap_or(self.max_attempts)
    }

    pub fn base_delay_of(&self, step: usize) -> u32 {
        self.steps[step].base_delay.unwrap_or(self.base_delay)
    }

    pub fn timeout_of(&self, step: usize) -> u32 {
        self.steps[step].timeout.unwrap_or(self.timeout)
    }

    pub fn has_root_map(&self) -> bool {
        self.steps
            .iter()
            .any(|step| step.is_map && step.deps.is_empty())
    }
}

impl StepDefinition {
    pub fn has_condition(&self) -> bool {
        self.required.is_some() || self.forbidden.is_some()
    }
}
