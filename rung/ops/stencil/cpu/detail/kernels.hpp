// SPDX-License-Identifier: Apache-2.0
// The vector code of stencil's CPU rungs. A line is a piece of a row in the type of the sums (f32,
// f64), with what lies outside the array already in place, so that no kernel knows of edges. Lines
// may be read up to line_slack elements beyond what is asked for; results end exactly.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"

namespace rung::stencil_cpu {

/// Elements of a line behind its content that may be read: four vectors of 64 bytes.
inline constexpr std::int64_t line_slack = 64;

/// out[j] = scale * sum over lines l and taps t of weights[l * taps + t] * lines[l][j + t].
void weigh_lines(const float* const* lines, int count, const float* weights, int taps, float scale,
                 float* out, std::int64_t length);
void weigh_lines(const double* const* lines, int count, const double* weights, int taps,
                 double scale, double* out, std::int64_t length);

/// out[j] = scale * (a[j] + b[j]); out may be a or b.
void add_lines(const float* a, const float* b, float scale, float* out, std::int64_t length);
void add_lines(const double* a, const double* b, double scale, double* out, std::int64_t length);

/// Contiguous elements of an array as a line, and a line as elements: f32 from and to f32, f16,
/// bf16 and u8.
void widen_line(DType type, const void* from, float* line, std::int64_t length);
void narrow_line(const float* line, DType type, void* to, std::int64_t length);

}  // namespace rung::stencil_cpu
