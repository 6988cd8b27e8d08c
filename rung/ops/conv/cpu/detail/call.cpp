// SPDX-License-Identifier: Apache-2.0
// conv: how long its SIMD rungs take.
#include "rung/ops/conv/cpu/detail/call.hpp"

#include <algorithm>

#include "rung/cpu/isa.hpp"

namespace rung::conv_cpu {

double seconds(const Conv::Args& args, int threads) {
  // Of multiply-adds in full tiles, of gathering a term of a pixel, and of what a team costs.
  const double rate = cpu::isa() == cpu::Isa::avx512 ? 200e9 : 90e9;
  constexpr double a_term = 0.25e-9, a_start = 0.5e-6, a_thread = 2e-6;
  const ConvGeometry& g = args.geometry;
  const double pixels = static_cast<double>(g.images) * static_cast<double>(g.results());
  const auto terms = static_cast<double>(args.terms());
  const double rows = std::max(6.0, static_cast<double>(g.group_filters()));
  const double groups = static_cast<double>(g.groups);
  const double work = groups * pixels * terms * (rows * 2 / rate + a_term);
  const double weights = static_cast<double>(args.w.size()) * 0.5e-9;
  return a_start + (work + weights) / threads + (threads > 1 ? a_thread : 0);
}

}  // namespace rung::conv_cpu
