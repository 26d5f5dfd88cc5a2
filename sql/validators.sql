-- What a name may look like, and how long a retry waits. These three read no table and run no SQL. The CHECK
-- constraints of the tables call the first two, so they come before the tables and must stay immutable.

-- Names are read as UTF-8: in another encoding some could not be read at all.

do $$
begin
  if pg_catalog.getdatabaseencoding() <> 'UTF8' then
    raise exception using
      errcode = 'feature_not_supported',
      message = 'pgflow needs a database with encoding "UTF8"',
      detail = pg_catalog.format('Database "%s" has encoding "%s".', pg_catalog.current_database(), pg_catalog.getdatabaseencoding()),
      hint = 'Create a database with: create database ... encoding ''UTF8'' template template0.';
  end if;
end
$$;

create or replace function pgflow.is_valid_slug(slug text)
returns boolean
language c
immutable
parallel safe
as 'MODULE_PATHNAME', 'is_valid_slug_wrapper';

comment on function pgflow.is_valid_slug is
'Whether a flow or step may have this slug: letters, digits and underscores, no digit first, at most 128 characters, and not the word "run". False for NULL.';

create or replace function pgflow.is_valid_queue_name(queue_name text)
returns boolean
language c
immutable
parallel safe
as 'MODULE_PATHNAME', 'is_valid_queue_name_wrapper';

comment on function pgflow.is_valid_queue_name is
'Whether a step or task may store this queue name: 1 to 47 characters, all lower case, without "$", ";", "--" and single quotes, which PGMQ refuses. False for NULL.';

create or replace function pgflow.calculate_retry_delay(base_delay numeric, attempts_count integer)
returns integer
language c
immutable
parallel safe
as 'MODULE_PATHNAME', 'calculate_retry_delay_wrapper';

comment on function pgflow.calculate_retry_delay is
'Seconds to wait before the next attempt: floor(base_delay * 2^attempts_count), at most 2147483647. base_delay is in seconds; NULL when an argument is NULL. Error 22003 when base_delay is NaN.';
