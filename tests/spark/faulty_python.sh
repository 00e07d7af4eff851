#!/bin/sh
# The Python of the executors of cluster_faults.py: all but the first have the fault $PLANTED.
planted=$PLANTED
[ "$(basename "$PWD")" != 0 ] || planted=
case $planted in
  package | version | clock) export PYTHONPATH="$FAULTS/$planted:$PYTHONPATH" ;;
  path) exec unshare --mount sh -c 'mount -t tmpfs tmpfs "$UNSHARED" && exec "$FAULTLESS_PYTHON" "$@"' sh "$@" ;;
  credentials) export AWS_ACCESS_KEY_ID=revoked ;;
  zone) export TZ=Asia/Tokyo ;;
esac
exec "$FAULTLESS_PYTHON" "$@"
