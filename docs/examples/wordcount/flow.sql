-- The flow: five steps, stored in the database. Running this file again changes nothing.
--
--   files ──> count ──┬─> top_words ──────┬─> report
--                     └─> longest_words ──┘
--
-- An attempt may take 5 seconds. A task that fails is tried again, up to 3 attempts in all: 2 seconds after the
-- first one (base_delay * 2 ^ attempts), 4 seconds after the second.

begin;

select pgflow.create_flow('wordcount', max_attempts => 3, base_delay => 1, timeout => 5);

-- Lists the texts in a folder. Its output is an array, so that a map step can follow.
select pgflow.add_step('wordcount', 'files');

-- A map step: one task for each element of that array.
select pgflow.add_step('wordcount', 'count', deps_slugs => '{files}', step_type => 'map');

-- These two wait for all of count's tasks, and run side by side.
select pgflow.add_step('wordcount', 'top_words', deps_slugs => '{count}');
select pgflow.add_step('wordcount', 'longest_words', deps_slugs => '{count}');

-- Waits for both. No step waits for this one, so its output is the run's.
select pgflow.add_step('wordcount', 'report', deps_slugs => '{top_words,longest_words}');

commit;
