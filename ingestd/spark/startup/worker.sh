#!/bin/sh
# The Python of Spark's workers on a local master; see prefork_server.py.
exec "$INGESTD_PYTHON" -I -S "${0%/*}/prefork_client.py" "$@"
