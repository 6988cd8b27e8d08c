#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs a program on the simulated GPU, for ctest and custom commands: run.sh RUNG PROGRAM ARGUMENT ...
rung=$1 program=$2
shift 2
exec "$rung" emulate "$program" -- "$@"
