// SPDX-License-Identifier: Apache-2.0
// histogram: operator object, list of rungs, and validation of arguments.
#include "rung/ops/histogram/op/histogram.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "rung/core/require.hpp"
#include "rung/core/rounding.hpp"
#include "rung/harness/any_operator.hpp"
#include "rung/ops/histogram/op/bins.hpp"

namespace rung {
namespace {

// Initialized before any dynamic initializer runs, so rungs of any file may push themselves.
constinit RungList<Histogram> rung_list;
const Operator<Histogram> self;

constexpr std::int64_t max_bins = std::int64_t{1} << 30;
constexpr std::int64_t max_i32 = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(const std::string& message) { reject(Histogram::name, message); }

/// One axis of x while its axes are sorted.
struct Axis {
  std::int64_t extent;
  std::int64_t stride;
  [[nodiscard]] bool outside_of(const Axis& other) const {
    // Axes of stride 0, which repeat the inner axes, come first, so that rows stay long.
    if (stride == 0 || other.stride == 0) return stride == 0 && other.stride != 0;
    return stride > other.stride;
  }
};

/// Returns x with its axes merged as far as possible, each with a non-negative stride, starting at
/// the element of the lowest address.
ConstTensorRef flatten(const ConstTensorRef& x) {
  Axis axes[max_rank];  // in descending order of strides
  int rank = 0;
  std::int64_t first = 0;  // offset from x's first element to the element of the lowest address
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x.shape[axis] == 1) continue;
    Axis next{x.shape[axis], x.strides[axis]};
    if (next.stride < 0 && !x.empty()) {
      first += (next.extent - 1) * next.stride;
      next.stride = -next.stride;
    }
    int at = rank++;
    for (; at > 0 && next.outside_of(axes[at - 1]); --at) axes[at] = axes[at - 1];
    axes[at] = next;
  }
  ConstTensorRef flat = x;
  if (x.empty() || rank == 0) {
    flat.shape = Extents{x.empty() ? 0 : 1};
    flat.strides = Extents{1};
  } else {
    flat.shape = flat.strides = Extents{};
    int kept = 0;
    for (int axis = 0; axis < rank; ++axis) {
      const Axis& next = axes[axis];
      if (kept > 0 && flat.strides[kept - 1] == next.stride * next.extent) {
        flat.shape[kept - 1] *= next.extent;
        flat.strides[kept - 1] = next.stride;
      } else {
        flat.shape[kept] = next.extent;
        flat.strides[kept] = next.stride;
        ++kept;
      }
    }
    flat.shape.rank = flat.strides.rank = kept;
  }
  if (x.data != nullptr) {
    flat.data =
        static_cast<const char*>(x.data) + first * static_cast<std::int64_t>(size_of(x.dtype));
  }
  return flat;
}

void validate_range(const Histogram::Args& args) {
  const auto bins = static_cast<double>(args.bins());
  if (!std::isfinite(args.low) || !std::isfinite(args.high) || !(args.low < args.high)) {
    refuse(
        fmt::format("the range is [{}, {}] in x's type {}; accepted: finite, low < high, or low = "
                    "high for [0, n)",
                    args.low, args.high, to_string(args.x.dtype)));
  }
  if (!is_floating(args.x.dtype)) {
    const double span = args.high - args.low;
    constexpr double whole = 0x1p53;
    if (std::floor(args.low) != args.low || std::floor(args.high) != args.high ||
        std::abs(args.low) > whole || std::abs(args.high) > whole || span > 0x1p32) {
      refuse(
          fmt::format("the range of {} is [{}, {}); accepted: whole numbers of at most 53 bits, at "
                      "most 2^32 apart",
                      to_string(args.x.dtype), args.low, args.high));
    }
    if (bins > span) {
      refuse(
          fmt::format("counts has {} bins for the {} whole numbers of [{}, {}); accepted: at most "
                      "as many bins as numbers",
                      args.bins(), span, args.low, args.high));
    }
    return;
  }
  const bool good = args.x.dtype == DType::f64
                        ? EvenBins<double>::representable(args.low, args.high, args.bins())
                        : EvenBins<float>::representable(args.low, args.high, args.bins());
  if (!good) {
    refuse(
        fmt::format("the range is [{}, {}] with {} bins; accepted: a width and a number of bins a "
                    "unit that neither overflow nor underflow in {}",
                    args.low, args.high, args.bins(), args.x.dtype == DType::f64 ? "f64" : "f32"));
  }
}

}  // namespace

RungList<Histogram>& Histogram::rungs() { return rung_list; }

void Histogram::bind(Args& args) {
  using enum DType;
  if (args.counts.rank() != 1) {
    refuse(fmt::format("counts has {} ({}); accepted: 1", axis_count(args.counts.rank()),
                       to_string(args.counts.shape)));
  }
  if (is_given(args.edges)) {
    if (args.low != 0 || args.high != 0) {
      refuse(fmt::format("edges are given, and low = {} and high = {}; accepted: either", args.low,
                         args.high));
    }
    if (args.edges.rank() != 1 || args.edges.shape[0] - 1 != args.bins()) {
      refuse(fmt::format("edges is {} and counts {}; accepted: one edge more than counts, {}",
                         to_string(args.edges.shape), to_string(args.counts.shape),
                         args.bins() + 1));
    }
  }
  require_dtype(name, args.x, "x", {u8, u16, i32, i64, f32, f64, f16, bf16});
  require_dtype(name, args.counts, "counts", {i32, i64});
  if (args.bins() < 1 || args.bins() > max_bins) {
    refuse(fmt::format("counts has {} bins; accepted: 1 to {}", args.bins(), max_bins));
  }
  if (args.low == args.high) {
    args.low = 0;
    args.high = static_cast<double>(args.bins());
  }
  if (is_floating(args.x.dtype) && args.x.dtype != f64) {
    args.low = nearest_f32(args.low);
    args.high = nearest_f32(args.high);
  }
  args.x = flatten(args.x);
  if (args.counts.dtype == i32 && args.size() > max_i32) {
    refuse(
        fmt::format("x has {} elements and counts is i32, which holds {}; accepted: i64 counts, "
                    "or fewer elements",
                    args.size(), max_i32));
  }
  if (args.even()) {
    validate_range(args);
  } else {
    require_dtype(name, args.edges, "edges", {key_dtype(args.x.dtype)});
  }
}

void histogram(Context& context, const ConstTensorRef& x, const TensorRef& counts,
               const HistogramOptions& options, Pick pick) {
  call<Histogram>(context, pick, [&]<class Call>() {
    return Call{.x = x,
                .counts = counts,
                .edges = options.edges,
                .low = options.low,
                .high = options.high,
                .accumulate = options.accumulate};
  });
}

}  // namespace rung
