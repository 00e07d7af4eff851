#!/bin/sh
# Writes, inspects and queries real data. `tools/demo.sh spark` runs the example pipeline on Spark instead, on the changes
# between two releases. Bioregistry is MIT, its data CC0.
set -eu
cd "$(dirname "$0")/.."
make build
demo=.cache/demo
lines=$demo/bioregistry.ndjson

package() {
  .venv/bin/pip install --quiet --no-deps --ignore-requires-python --target "$demo/$1" "bioregistry==$2"
}
title() {
  printf '\n== %s ==\n' "$1"
}

if [ ! -f "$lines" ]; then
  package package 0.15.6
  # Its one JSON object becomes one line for each prefix.
  .venv/bin/python - "$demo/package/bioregistry/data/bioregistry.json" > "$lines.part" << 'PYTHON'
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    for prefix, entry in json.load(file).items():
        print(json.dumps({"prefix": prefix, **entry}))
PYTHON
  mv "$lines.part" "$lines"
fi

if [ "${1:-}" = spark ]; then
  if [ ! -d "$demo/landing" ]; then
    package old 0.12.0
    .venv/bin/python examples/registry_changes.py "$demo/old/bioregistry/data/bioregistry.json" \
      "$demo/package/bioregistry/data/bioregistry.json" "$demo/landing"
  fi
  rm -rf "$demo/spark"
  exec .venv/bin/python examples/spark_pipeline.py "$demo/landing" "$demo/spark" stream monitor maintain \
    --files-per-batch 1 --master 'local[2]'
fi

rm -rf "$demo/registry"
title 'Write JSON lines to a Delta table: common paths become columns of their own'
.venv/bin/delta-variant write "$lines" "$demo/registry" --column entry
title 'How the file is shredded: paths, types, how full they are, bytes, bounds (the first 24)'
.venv/bin/delta-variant inspect "$demo/registry" | head -n 24
title 'A query over paths: only their columns are read'
.venv/bin/delta-variant read "$demo/registry" -c prefix=entry:prefix::string -c name=entry:name::string \
  -c license=entry:license::string --where "entry:license::string like 'CC0%'" --limit 10
title 'The statistics that other engines skip files by'
.venv/bin/delta-variant stats "$demo/registry"
