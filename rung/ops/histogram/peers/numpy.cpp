// SPDX-License-Identifier: Apache-2.0
// histogram / numpy: the steps of numpy.bincount on an array of bytes: conversion to 64-bit
// integers, a pass for minimum and maximum, a pass that counts in 64 bits. Not NumPy itself, which
// would need Python in the process; NumPy compares floats with computed edges, so its float
// histograms are not comparable (see histogram.hpp).
#include <algorithm>
#include <cstdint>
#include <vector>

#include "rung/ops/histogram/peers/call.hpp"

namespace rung {
namespace {

Support supports(const Histogram::Args& args, const Context&) {
  if (args.x.dtype != DType::u8) return unsupported("bincount counts whole numbers; here u8");
  return histogram_peer::supports_plain(args);
}

void run(const Histogram::Args& args, Context&) {
  const auto* const x = static_cast<const std::uint8_t*>(args.x.data);
  auto* const result = static_cast<std::int32_t*>(args.counts.data);
  const std::vector<std::int64_t> values(x, x + args.size());  // the cast to intp
  std::vector<std::int64_t> counts(256);
  if (!values.empty()) {
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    if (*least < 0 || *greatest > 255) return;  // bincount would raise an error or grow its result
  }
  for (const std::int64_t value : values) ++counts[static_cast<std::size_t>(value)];
  std::transform(counts.begin(), counts.end(), result,
                 [](std::int64_t count) { return static_cast<std::int32_t>(count); });
}

std::string about() { return "the steps of numpy.bincount, one thread"; }

const Rung<Histogram> self{
    {.name = "numpy", .peer = true, .about = about, .supports = supports, .run = run}};

}  // namespace
}  // namespace rung
