#!/bin/sh
# Runs a program without address space layout randomization.
exec setarch "$(uname -m)" --addr-no-randomize "$@"
