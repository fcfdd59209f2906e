#!/bin/sh
# Starts Postgres, and makes its database at the first start: of the user `evalpipe` with EVALPIPE_POSTGRES_PASSWORD.
set -eu

home=/var/lib/postgresql
bin=$(echo /usr/lib/postgresql/*/bin)

if [ ! -d "$home/data" ]; then
    # Under another name until it is whole: a start that was killed in the middle begins again.
    rm -rf "$home/begun"
    printf '%s\n' "$EVALPIPE_POSTGRES_PASSWORD" > "$home/password"
    "$bin/initdb" -D "$home/begun" -U evalpipe --pwfile="$home/password" \
        --auth-local=trust --auth-host=scram-sha-256 --encoding=UTF8 --locale=C.UTF-8
    rm "$home/password"
    echo 'host all all all scram-sha-256' >> "$home/begun/pg_hba.conf"
    echo 'CREATE DATABASE evalpipe' | "$bin/postgres" --single -D "$home/begun" postgres
    mv "$home/begun" "$home/data"
fi
exec "$bin/postgres" -D "$home/data" -c listen_addresses='*'
