//! flow_graph and run_graph: pictures as Mermaid text. How a step is drawn is tested in `src/rules/graph.rs`.

use pgrx::prelude::*;

#[pg_schema]
mod tests {
    use crate::behaviour::support::*;
    use pgrx::prelude::*;
    use pgrx::Uuid;

    /// The run's picture without times and colours.
    fn picture(run_id: Uuid) -> String {
        text(&format!(
            "select regexp_replace(pgflow.run_graph('{run_id}'), '<br/>[0-9.]+ s|\\n  classDef [^\\n]*', '', 'g')"
        ))
    }

    #[pg_test]
    fn a_flow_s_picture_shows_steps_maps_conditions_and_dependencies() {
        flow(
            "f",
            &[
                "'end'",
                "'m', array['end'], step_type => 'map'",
                "'x', array['m', 'end'], required_input_pattern => '{\"m\": [1]}', when_unmet => 'fail'",
                "'y', forbidden_input_pattern => '{\"quiet\": true}', when_unmet => 'skip-cascade'",
            ],
        );
        assert_eq!(
            text("select pgflow.flow_graph(flow_slug => 'f')"),
            "flowchart TD
  s0[\"end\"]
  s1[[\"m<br/>a task for each element\"]]
  s2[\"x<br/>condition, else fail the run\"]
  s3[\"y<br/>condition, else skip with all that follows\"]
  s0 --> s1
  s0 --> s2
  s1 --> s2"
        );
    }

    #[pg_test]
    fn an_unknown_or_null_flow_has_no_picture_and_one_without_steps_an_empty_one() {
        flow("f", &[]);
        assert_eq!(text("select pgflow.flow_graph('F')"), "NULL");
        assert_eq!(text("select pgflow.flow_graph(null)"), "NULL");
        assert_eq!(text("select pgflow.flow_graph('f')"), "flowchart TD");
    }

    #[pg_test]
    fn an_unknown_or_null_run_has_no_picture_and_one_without_steps_an_empty_one() {
        flow("f", &[]);
        let id = start("f", "{}");
        assert_eq!(text("select pgflow.run_graph(gen_random_uuid())"), "NULL");
        assert_eq!(text("select pgflow.run_graph(null)"), "NULL");
        assert_eq!(picture(id), "flowchart TD");
    }

    #[pg_test]
    fn a_run_s_picture_shows_every_state_with_its_colour() {
        flow(
            "f",
            &[
                "'a'",
                "'m', array['a'], step_type => 'map', max_attempts => 2",
                "'s', array['a'], required_input_pattern => '{\"a\": {}}'",
                "'w', array['m', 's']",
                "'z', max_attempts => 1",
            ],
        );
        let id = start("f", "{}");
        claim("f");
        complete(id, "a", 0, "[1, 2, 3]");
        claim("f");
        complete(id, "m", 0, "1");
        fail(id, "m", 1, "once");
        assert_eq!(
            picture(id),
            "flowchart TD
  s0[\"a<br/>completed\"]:::completed
  s1[[\"m<br/>started<br/>1/3 tasks, 1 retry\"]]:::started
  s2[\"s<br/>skipped: condition_unmet<br/>condition, else skip\"]:::skipped
  s3[\"w<br/>created\"]:::created
  s4[\"z<br/>started\"]:::started
  s0 --> s1
  s0 --> s2
  s1 --> s3
  s2 --> s3"
        );
        fail(id, "z", 0, "no luck");
        assert_eq!(
            rows(&format!(
                "select (regexp_matches(pgflow.run_graph('{id}'), 's4.*:::(\\w+)'))[1]
                 union all select (regexp_matches(pgflow.run_graph('{id}'), 'classDef (\\w+)', 'g'))[1]"
            )),
            ["failed", "created", "started", "completed", "failed", "skipped"]
        );
        invariants_hold();
    }

    #[pg_test]
    fn a_run_s_picture_shows_the_steps_that_it_was_started_with() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        run("select pgflow.add_step('f', 'b', array['a'])");
        assert_eq!(
            picture(id),
            "flowchart TD\n  s0[\"a<br/>started\"]:::started"
        );
    }

    #[pg_test]
    fn a_picture_needs_the_right_to_read_the_tables() {
        flow("f", &["'a'"]);
        let id = start("f", "{}");
        let pictures = format!("select pgflow.flow_graph('f') || pgflow.run_graph('{id}')");
        run("create role pgflow_viewer; grant usage on schema pgflow to pgflow_viewer; set local role pgflow_viewer");
        assert_eq!(failure(&pictures).code, "42501");
        run("reset role; grant select on all tables in schema pgflow to pgflow_viewer; set local role pgflow_viewer");
        run(&pictures);
        run("reset role");
    }

    #[pg_test]
    fn a_run_s_picture_reads_the_run_s_rows_only() {
        flow("f", &["'a'", "'b', array['a']"]);
        let id = start("f", "{}");
        let picture = format!("select pgflow.run_graph('{id}')");
        run(&picture);
        let alone = pages_of(&picture);
        run("select pgflow.start_flow('f', '{}') from generate_series(1, 2000)");
        let among_many = pages_of(&picture);
        assert!(
            among_many < alone + 60.0,
            "{alone} pages alone, {among_many} among 2,000 runs"
        );
    }

    #[pg_test]
    fn a_picture_of_many_steps_costs_little_whatever_statistics_say() {
        flow("one", &["'a'"]);
        flow("two", &["'a'", "'b', array['a']"]);
        run("analyze pgflow.flows, pgflow.steps, pgflow.deps");
        flow("f", &["'s0'"]);
        run(
            "select pgflow.add_step('f', 's' || i, array['s' || i - 1]) from generate_series(1, 499) as i",
        );
        let id = start("f", "{}");
        for picture in [
            "pgflow.flow_graph('f')".to_string(),
            format!("pgflow.run_graph('{id}')"),
        ] {
            let pages = pages_of(&format!("select {picture}"));
            assert!(pages < 40_000.0, "{picture} touches {pages} pages");
        }
    }
}
