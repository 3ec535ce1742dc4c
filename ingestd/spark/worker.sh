#!/bin/sh
# The Python of Spark's workers on a local master; see nursery.py.
exec "$INGESTD_PYTHON" -I -S "${0%/*}/worker_shim.py" "$@"
