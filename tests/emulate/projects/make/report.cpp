// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "scale.h"

void report(const char* text) { std::printf("%s\n", text); }
