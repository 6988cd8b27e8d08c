// SPDX-License-Identifier: Apache-2.0
// std::lerp of C++20 is not a C function, but the library's math.h exports it globally, where it
// collides with a lerp(float, float, float) that many CUDA programs define.
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
