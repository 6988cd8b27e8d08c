#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# How ctest and custom commands run a program on the simulated GPU: run.sh RUNG PROGRAM ARGUMENT ...
rung=$1 program=$2
shift 2
exec "$rung" emulate "$program" -- "$@"
