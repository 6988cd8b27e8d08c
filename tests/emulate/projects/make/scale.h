// SPDX-License-Identifier: Apache-2.0
// Interface of the kernel, and a constant that the makefile must depend on.
#pragma once
constexpr float factor = 3;
void scale(float* p, int n);
void report(const char* text);
