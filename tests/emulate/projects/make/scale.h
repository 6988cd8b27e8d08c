// SPDX-License-Identifier: Apache-2.0
#pragma once
constexpr float factor = 3;
void scale(float* p, int n);
void report(const char* text);
