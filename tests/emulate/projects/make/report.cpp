// SPDX-License-Identifier: Apache-2.0
// Host code that nvcc hands to the host compiler.
#include <cstdio>

#include "scale.h"

void report(const char* text) { std::printf("%s\n", text); }
