// SPDX-License-Identifier: Apache-2.0
// The vector code of stencil's CPU rungs. A line is a piece of a row in the type of the sums (f32,
// f64), with what is outside the array already in place, so that no kernel knows of edges. Lines
// may be read up to line_slack elements beyond what is asked for; results end exactly.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"

namespace rung::stencil_cpu {

/// Elements of a line behind its content that may be read: four vectors of 64 bytes.
inline constexpr std::int64_t line_slack = 64;

/// Rows of results that are made together, each line under their masks loaded once for all of them.
inline constexpr int block_rows = 4;

/// Weighted sums of lines: `rows` rows of results, 1 or block_rows, one below the other.
///   out[q][j] = scale * sum of weights[(k * down + i) * across + t] * line(k, q + i)[j + t]
/// over planes k, rows i and taps t of the mask; line(k, r) is lines[k * (down + rows - 1) + r].
template <class T>
struct Weighing {
  const T* const* lines;
  int planes, down, across;  // of the mask
  const T* weights;
  T scale;
  T* const* out;
  int rows;
  std::int64_t length;
  bool streams;  // non-temporal stores; rows of results begin with a cache line
};
void weigh_lines(const Weighing<float>& w);
void weigh_lines(const Weighing<double>& w);

/// out[j] = from[j] + ... + from[j + taps - 1], with at most 8 additions for any of the windows. Of
/// `from` nothing is read beyond the last window, if `length` is a multiple of 64 bytes.
void sum_windows(const float* from, int taps, float* out, std::int64_t length);
void sum_windows(const double* from, int taps, double* out, std::int64_t length);

/// What has been written by non-temporal stores is seen by other threads before what comes next.
void end_streaming();

/// out[j] = scale * (a[j] + b[j]); out may be a or b. `streams`: by non-temporal stores, out begins
/// with a cache line.
void add_lines(const float* a, const float* b, float scale, float* out, std::int64_t length,
               bool streams);
void add_lines(const double* a, const double* b, double scale, double* out, std::int64_t length,
               bool streams);

/// Contiguous elements of an array as a line, and a line as elements: f32 from and to f32, f16,
/// bf16 and u8.
void widen_line(DType type, const void* from, float* line, std::int64_t length);
void narrow_line(const float* line, DType type, void* to, std::int64_t length);

}  // namespace rung::stencil_cpu
