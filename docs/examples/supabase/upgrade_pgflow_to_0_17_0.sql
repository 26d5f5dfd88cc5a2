-- Copy to supabase/migrations/TIMESTAMP_upgrade_pgflow_to_0_17_0.sql, after pgflow's own migrations up to 0.16.0.
-- docs/upgrade.md says what to stop before and what to do after.
--
-- Takes over the pgflow 0.16.0 of this database, with its data, and makes it the extension in version 0.17.0. It does
-- all of it or nothing. Needs a superuser.
begin;

-- How long to wait for a lock on a table before giving up; at most 10 s count.
set local lock_timeout = '5s';

create extension pgflow version 'unpackaged';
alter extension pgflow update to '0.17.0';

commit;
