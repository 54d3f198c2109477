#!/bin/sh
# Run once, when the database is made: the users that every service but `init` logs in as. They may do what the ledger's
# group roles may (docs/postgresql.md): append to the log, never change it, and never migrate. Services that never give
# events their place in the log log in as the worker, which may not.
set -eu

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" \
  --set app="${POSTGRES_DB}_app" --set sequencer="${POSTGRES_DB}_sequencer" \
  --set service="${POSTGRES_DB}_service" --set worker="${POSTGRES_DB}_worker" <<'SQL'
\getenv password POSTGRES_SERVICE_PASSWORD
\getenv worker_password POSTGRES_WORKER_PASSWORD
CREATE ROLE :"app" NOLOGIN;
CREATE ROLE :"sequencer" NOLOGIN;
CREATE ROLE :"service" LOGIN PASSWORD :'password' IN ROLE :"app", :"sequencer";
CREATE ROLE :"worker" LOGIN PASSWORD :'worker_password' IN ROLE :"app";
SQL
