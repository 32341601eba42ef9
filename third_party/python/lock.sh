#!/bin/sh
# bazel run //third_party/python:lock: writes the lock files anew from the .in files, and keeps
# what they already have where that still fits. `-- -U` upgrades all, `-- -P NAME` one package.
set -eu
uv=$PWD/$1
shift
cd "$BUILD_WORKSPACE_DIRECTORY/third_party/python"

compile() {
  "$uv" pip compile --no-config --quiet --no-header --no-annotate --universal \
    --python-version 3.12 --generate-hashes "$@"
}

# A layer has the versions of those below it, and does not list their packages again.
above() {
  for base; do
    printf -- '--constraint %s ' "$base"
    sed -n 's/^\([A-Za-z0-9._-]*\)==.*/--no-emit-package \1/p' "$base" | tr '\n' ' '
  done
}

compile -o backend.txt "$@" backend.in
compile -o core.txt "$@" core.in
# shellcheck disable=SC2046
{
  compile -o trainers.txt --excludes trainers_excludes.txt $(above core.txt) "$@" trainers.in
  compile -o e2e.txt $(above core.txt trainers.txt) "$@" e2e.in
  compile -o notebooks.txt $(above core.txt trainers.txt e2e.txt) "$@" notebooks.in
  compile -o tpu.txt $(above core.txt trainers.txt) "$@" tpu.in
}
# Its mypy looks at the packages of core and trainers, so shared ones have one version here too.
compile -o lint.txt --constraint core.txt --constraint trainers.txt "$@" lint.in
