// SPDX-License-Identifier: Apache-2.0
// A norm_backward call as the CPU's vector kernels see it, and how its rows are scheduled. No
// vector code here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rung/ops/norm_backward/op/norm_backward.hpp"

namespace rung::norm_backward_cpu {

struct Call {
  const NormBackward::Args* args = nullptr;
  NormBackward::Lines lines;
  std::int64_t rows = 0;
  std::int64_t n = 0;
  const void* gamma = nullptr;  // contiguous, in the arithmetic type; or null
  std::int64_t chunks = 1;      // of rows, each with sums of its own for dgamma and dbeta
  void* sums = nullptr;         // [chunks][2][n]: of dy z, of dy
  [[nodiscard]] bool wants_sums() const {
    return args->dgamma.data != nullptr || args->dbeta.data != nullptr;
  }
};

/// How many shares the rows are added up in: it depends on the shape alone, so that the order of
/// additions, and every bit, is the same for any number of threads. Some 32 rows a share keep the
/// chains of additions short; their sums take 256 MiB at most, unless eight shares need more.
inline std::int64_t chunks_of(std::int64_t rows, std::int64_t n, std::size_t size) {
  constexpr std::int64_t max_bytes = std::int64_t{256} << 20;
  constexpr std::int64_t most = 64;
  constexpr std::int64_t least = 8;
  const std::int64_t fits =
      max_bytes / (2 * std::max<std::int64_t>(n, 1) * static_cast<std::int64_t>(size));
  return std::clamp<std::int64_t>((rows + 31) / 32, 1, std::clamp(fits, least, most));
}

struct Kernels {
  /// dx of the rows of chunks [begin, end), and the chunks' sums.
  void (*rows)(const Call& call, std::int64_t begin, std::int64_t end);
  /// dgamma and dbeta of columns [begin, end) from the sums of all chunks.
  void (*columns)(const Call& call, std::int64_t begin, std::int64_t end);
};
Kernels kernels(DType dtype);

Support supports(const NormBackward::Args& args);
double seconds(const NormBackward::Args& args, int threads);
void differentiate(const NormBackward::Args& args, Context& context, int threads);

}  // namespace rung::norm_backward_cpu
