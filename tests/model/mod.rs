//! The random model test: random flows, driven by random claims, reports and recoveries, must end up as `rules` says,
//! which is engine.md once more in plain Rust. Compared after every operation: all rows, messages, events, answers.
//!
//! A seed draws a case (`random`), `drive` plays it. A failing seed prints the smallest case that still fails, as SQL.
//! `make test-model` plays 10,000 seeds; `make test-model SEED=17` plays one, `SEED=17 RUNS=500` those from there on. Seeds
//! that once failed are kept in `seeds.txt` and always played.

mod drive;
mod flow;
mod json;
mod operation;
mod random;
mod rules;

use pgrx::prelude::*;

/// Settings for the tests' server: how many seeds the long form plays, and from which one on. The tests run inside the
/// server, where the variables of the command line are not known.
#[cfg(test)]
pub fn conf_options() -> Vec<&'static str> {
    let setting = |variable: &str, name: &str| {
        let value: u64 = std::env::var(variable).ok()?.parse().ok()?;
        let line: &'static str = format!("pgflow_model.{name} = {value}").leak();
        Some(line)
    };
    let settings = [
        setting("PGFLOW_MODEL_RUNS", "runs"),
        setting("PGFLOW_MODEL_SEED", "seed"),
    ];
    settings.into_iter().flatten().collect()
}

/// Plays seeds; the first one that fails ends the test.
fn play(seeds: impl IntoIterator<Item = u64>) {
    drive::prepare();
    for seed in seeds {
        let case = random::case(seed);
        let Err(difference) = drive::play(&case) else {
            continue;
        };
        let operations = case.operations.len();
        let (case, smallest) = drive::smallest(case, difference);
        panic!(
            "seed {seed}: engine and model differ. Of {operations} operations {} are left:\n{};\n-- {}\n",
            case.operations.len(),
            smallest.script.join(";\n"),
            smallest.what
        );
    }
}

/// Seeds that once failed: the first word of each line.
fn kept_seeds() -> impl Iterator<Item = u64> {
    let lines = include_str!("seeds.txt").lines();
    lines.filter_map(|line| line.split_whitespace().next()?.parse().ok())
}

fn setting(name: &str) -> Option<u64> {
    let query = format!("select current_setting('pgflow_model.{name}', true)");
    Spi::get_one::<String>(&query).ok()??.parse().ok()
}

#[pg_schema]
mod tests {
    use super::*;

    #[pg_test]
    fn random_cases_agree_with_the_model_in_the_first_hundred_seeds() {
        play(0..100);
    }

    #[pg_test]
    fn random_cases_agree_with_the_model_in_the_second_hundred_seeds() {
        play(100..200);
    }

    #[pg_test]
    fn random_cases_agree_with_the_model_in_the_third_hundred_seeds() {
        play(200..300);
    }

    #[pg_test]
    fn random_cases_agree_with_the_model_in_seeds_that_failed_once() {
        play(kept_seeds());
    }

    /// The long form; without settings it does nothing.
    #[pg_test]
    fn random_cases_agree_with_the_model_in_the_seeds_asked_for() {
        let first = setting("seed").unwrap_or_default();
        play(first..first + setting("runs").unwrap_or_default());
    }
}
