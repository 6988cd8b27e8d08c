// SPDX-License-Identifier: Apache-2.0
// C++20's std::lerp is no function of C's; but its library's math.h makes it one, and programs of
// CUDA's have a lerp(float, float, float) of their own.
#pragma once

#ifdef __cplusplus
#include <cmath>
namespace std {
void rung_lerp();
}
#define lerp rung_lerp
#include_next <math.h>
#undef lerp
#else
#include_next <math.h>
#endif
