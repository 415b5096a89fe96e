-- datagrip
select version();

-- datagrip
select current_database() as a, current_schemas(false) as b;

-- datagrip
select current_database(), current_schema(), current_user;

-- datagrip
select case when pg_catalog.pg_is_in_recovery() then null else (pg_catalog.txid_current() % (2^32)::bigint)::varchar::bigint end as current_txid;

-- datagrip
select case when pg_catalog.pg_is_in_recovery() then null else pg_catalog.txid_current()::varchar::bigint end as current_txid;

-- datagrip
select round(extract(epoch from pg_postmaster_start_time() at time zone 'UTC')) as startup_time;

-- datagrip
select N.oid::bigint as id, datname as name, D.description, datistemplate as is_template, datallowconn as allow_connections, pg_catalog.pg_get_userbyid(N.datdba) as "owner" from pg_catalog.pg_database N left join pg_catalog.pg_shdescription D on N.oid = D.objoid order by case when datname = pg_catalog.current_database() then -1::bigint else N.oid::bigint end;

-- datagrip
select N.oid::bigint as id, N.xmin as state_number, nspname as name, D.description, pg_catalog.pg_get_userbyid(N.nspowner) as "owner" from pg_catalog.pg_namespace N left join pg_catalog.pg_description D on N.oid = D.objoid order by case when nspname = pg_catalog.current_schema() then -1::bigint else N.oid::bigint end;

-- datagrip
select is_dst from pg_catalog.pg_timezone_names where name = 'UTC';

-- datagrip
select R.oid::bigint as role_id, rolname as role_name, rolsuper is_super, rolinherit is_inherit, rolcreaterole can_createrole, rolcreatedb can_createdb, rolcanlogin can_login, rolreplication is_replication, rolconnlimit conn_limit, rolvaliduntil valid_until, rolbypassrls bypass_rls, rolconfig config, D.description from pg_catalog.pg_roles R left join pg_catalog.pg_shdescription D on D.objoid = R.oid;

-- datagrip
select member id, roleid role_id, admin_option from pg_catalog.pg_auth_members order by id, roleid::text;

-- datagrip
select T.oid::bigint as id, T.spcname as name, T.xmin as state_number, pg_catalog.pg_get_userbyid(T.spcowner) as owner, pg_catalog.pg_tablespace_location(T.oid) as location, T.spcoptions as options, D.description as comment from pg_catalog.pg_tablespace T left join pg_catalog.pg_shdescription D on D.objoid = T.oid;

-- datagrip
select T.oid as object_id, T.spcacl as acl from pg_catalog.pg_tablespace T union all select T.oid as object_id, T.datacl as acl from pg_catalog.pg_database T;

-- datagrip
select L.oid as id, L.xmin as state_number, L.lanname as name, L.lanpltrusted as trusted, h.proname as handler from pg_catalog.pg_language L left join pg_catalog.pg_proc h on h.oid = L.lanplcallfoid order by lanname;

-- datagrip
select E.oid as id, E.xmin as state_number, extname as name, extversion as version, extnamespace as schema_id, nspname as schema_name, array(select unnest from unnest(available_versions) where unnest > extversion) as available_updates from pg_catalog.pg_extension E join pg_namespace N on E.extnamespace = N.oid left join (select name, array_agg(version) as available_versions from pg_available_extension_versions group by name) V on E.extname = V.name;

-- datagrip
select T.relkind as table_kind, T.relname as table_name, T.oid as table_id, T.xmin as table_state_number, false as table_with_oids, T.reltablespace as tablespace_id, T.reloptions as options, T.relpersistence as persistence, (select pg_catalog.array_agg(inhparent::bigint order by inhseqno)::varchar from pg_catalog.pg_inherits where T.oid = inhrelid) as ancestors, T.relispartition as is_partition, pg_catalog.pg_get_partkeydef(T.oid) as partition_key, pg_catalog.pg_get_expr(T.relpartbound, T.oid) as partition_expression, T.relam am_id, pg_catalog.pg_get_userbyid(T.relowner) as "owner" from pg_catalog.pg_class T where relnamespace = 2200::oid and relkind in ('r', 'm', 'v', 'f', 'p') order by table_kind, table_id;

-- datagrip
with T as (select T.oid as table_id, T.relname as table_name from pg_catalog.pg_class T where T.relnamespace = 2200::oid and T.relkind in ('r', 'm', 'v', 'f', 'p')) select T.table_id, C.attnum as column_position, C.attname as column_name, C.xmin as column_state_number, C.atttypmod as type_mod, C.attndims as dimensions_number, pg_catalog.format_type(C.atttypid, C.atttypmod) as type_spec, C.atttypid as type_id, C.attnotnull as mandatory, pg_catalog.pg_get_expr(D.adbin, T.table_id) as column_default_expression, not C.attislocal as column_is_inherited, C.attisdropped as column_is_dropped, C.attidentity as identity_kind, C.attgenerated as generated from T join pg_catalog.pg_attribute C on T.table_id = C.attrelid left join pg_catalog.pg_attrdef D on (C.attrelid, C.attnum) = (D.adrelid, D.adnum) where attnum > 0 order by table_id, attnum;

-- datagrip
select D.objoid id, case when 'pg_catalog.pg_type'::regclass = classoid then 'T' when 'pg_catalog.pg_class'::regclass = classoid then pg_catalog.translate(C.relkind::text, 'rmvfpiIS', 'rmvfpiIS') else 'X' end as kind, D.objsubid sub_id, D.description from pg_catalog.pg_description D left join pg_catalog.pg_class C on D.objoid = C.oid where C.relnamespace = 2200;

-- datagrip
select T.oid table_id, relkind table_kind, C.oid::bigint con_id, C.xmin con_state_id, conname con_name, contype con_kind, conkey con_columns, conindid index_id, confrelid ref_table_id, condeferrable is_deferrable, condeferred is_init_deferred, confupdtype on_update, confdeltype on_delete, connoinherit no_inherit, pg_catalog.pg_get_expr(conbin, T.oid) con_expression, confkey ref_columns, conexclop::int[] excl_operators, array(select unnest::regoper::varchar from unnest(conexclop)) excl_operators_str from pg_catalog.pg_constraint C join pg_catalog.pg_class T on C.conrelid = T.oid where relkind in ('r', 'v', 'f', 'p') and relnamespace = 2200::oid and contype in ('p', 'u', 'f', 'c', 'x');

-- datagrip
select tab.oid table_id, tab.relkind table_kind, ind_stor.relname index_name, ind_head.indexrelid index_id, ind_stor.xmin state_number, ind_head.indisunique is_unique, ind_head.indisprimary is_primary, ind_head.indnullsnotdistinct, pg_catalog.pg_get_expr(ind_head.indpred, ind_head.indrelid) as condition, (select pg_catalog.array_agg(inhparent::bigint order by inhseqno)::varchar from pg_catalog.pg_inherits where ind_stor.oid = inhrelid) as ancestors, ind_stor.reltablespace tablespace_id, opcmethod as access_method_id from pg_catalog.pg_class tab join pg_catalog.pg_index ind_head on ind_head.indrelid = tab.oid join pg_catalog.pg_class ind_stor on tab.relnamespace = ind_stor.relnamespace and ind_stor.oid = ind_head.indexrelid left join pg_catalog.pg_opclass on pg_opclass.oid = ANY(indclass) where tab.relnamespace = 2200::oid and tab.relkind in ('r', 'm', 'v', 'p') and ind_stor.relkind in ('i', 'I');
