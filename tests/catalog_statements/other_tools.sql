-- tableau, looker, hex
SELECT current_setting('integer_datetimes') AS d;

-- tableau, looker, hex
SELECT n.nspname, c.relname FROM pg_catalog.pg_class c, pg_catalog.pg_namespace n WHERE c.relnamespace = n.oid AND n.nspname NOT IN ('pg_catalog', 'pg_toast', 'information_schema') AND c.relkind IN ('r','v');

-- tableau, looker, hex
select t.typname, t.oid, t.typtype from pg_type t where t.typname in ('hstore','citext','geometry');

-- tableau, looker, hex
SELECT pg_backend_pid();

-- tableau, looker, hex
SELECT 1 AS one, current_database() AS db;

-- tableau, looker, hex
SELECT table_schema, table_name, table_type FROM information_schema.tables WHERE table_schema NOT LIKE 'pg\_%' ESCAPE '\' AND table_schema <> 'information_schema';

-- tableau, looker, hex
SELECT table_schema AS table_schema, table_name AS table_name, column_name AS column_name, data_type AS data_type FROM information_schema.columns WHERE table_name IN ('cities', 'people') LIMIT 20000;

-- tableau, looker, hex
SELECT has_schema_privilege('public', 'usage') AS a, has_database_privilege(current_database(), 'TEMP') AS t;

-- tableau, looker, hex
SELECT usename FROM pg_user WHERE usename = current_user;

-- tableau, looker, hex
SELECT pid, usename, state, query FROM pg_stat_activity WHERE state <> 'idle';

-- tableau, looker, hex
SELECT set_config('search_path', 'public', false);

-- tableau, looker, hex
select extname from pg_extension where extname = 'postgis';

-- tableau, looker, hex
SELECT name, setting FROM pg_settings WHERE name IN ('server_version','max_index_keys','TimeZone');

-- tableau, looker, hex
SELECT oid, typname FROM pg_type WHERE typname = ANY(ARRAY['int4','text']);

-- tableau, looker, hex
SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' ORDER BY 1;

-- tableau, looker, hex
SELECT EXISTS (SELECT 1 FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'cities') AS found;

-- tableau, looker, hex
SELECT to_regclass('public.cities') IS NOT NULL AS there;

-- tableau, looker, hex
SELECT pg_catalog.pg_encoding_to_char(encoding) FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database();
