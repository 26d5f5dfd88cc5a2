-- A 0.16.0 database as tests/upgrade fills it, with pg_cron's jobs and a queue that no flow owns.
create role app_owner;
create role app_web;
create role app_worker;
create role app_cron;
\i tests/fixtures/plain_0_16_0.sql
set role app_owner;
\set bulk 1
\i tests/upgrade/fill.sql
\i tests/upgrade/users.sql
reset role;
create function cron.alter_job(job_id bigint, active boolean) returns void language sql as $$ select $$;
select pgmq.create('left_over');
