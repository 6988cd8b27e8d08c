// SPDX-License-Identifier: Apache-2.0
// Prevents a name collision: the library's math.h exports C++20's std::lerp globally, and many CUDA
// programs define their own lerp(float, float, float).
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
