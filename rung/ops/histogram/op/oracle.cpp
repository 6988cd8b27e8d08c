// SPDX-License-Identifier: Apache-2.0
// histogram: cost and reference results. The oracle shares no code with bins.hpp.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "rung/harness/inputs.hpp"
#include "rung/ops/histogram/op/histogram.hpp"

namespace rung {
namespace {

/// Returns the bin of a float by the contract's formula; stores each step, so that compilers cannot
/// contract two.
template <class Real>
std::int64_t even_bin(Real x, const Histogram::Args& args) {
  const Real low = static_cast<Real>(args.low);
  const Real high = static_cast<Real>(args.high);
  if (!(low <= x) || !(x <= high)) return -1;
  const double exact_scale =
      static_cast<double>(args.bins()) / (static_cast<double>(high) - static_cast<double>(low));
  const volatile Real scale = static_cast<Real>(exact_scale);
  const volatile Real difference = x - low;
  const volatile Real product = difference * scale;
  return std::min(args.bins() - 1, static_cast<std::int64_t>(product));
}

/// Returns the bin of an integer, by division in 128-bit integers.
std::int64_t whole_bin(std::int64_t x, const Histogram::Args& args) {
  __extension__ using Wide = __int128;
  const auto low = static_cast<Wide>(args.low);
  const auto high = static_cast<Wide>(args.high);
  if (x < low || x >= high) return -1;
  return static_cast<std::int64_t>((x - low) * args.bins() / (high - low));
}

/// Returns the bin by the definition for given edges, with the standard library's search.
template <class Key>
std::int64_t edge_bin(Key x, const std::vector<Key>& edges) {
  if (!(edges.front() <= x) || !(x <= edges.back())) return -1;
  const auto bins = static_cast<std::int64_t>(edges.size()) - 1;
  const auto above = std::upper_bound(edges.begin(), edges.end(), x) - edges.begin();
  return std::min<std::int64_t>(above, bins) - 1;
}

template <class Key>
std::vector<Key> edges_of(const Histogram::Args& args) {
  std::vector<Key> edges;
  if (args.even()) return edges;
  const auto view = args.edges.view<const Key, 1>();
  for (std::int64_t i = 0; i <= args.bins(); ++i) edges.push_back(view(i));
  return edges;
}

/// Calls f(element) for all elements of x.
template <class T, class F>
void for_each(const ConstTensorRef& x, const F& f) {
  if (x.empty()) return;
  const int last = x.rank() - 1;
  const T* row = static_cast<const T*>(x.data);
  Extents at;
  for (;;) {
    for (std::int64_t i = 0; i < x.shape[last]; ++i) f(row[i * x.strides[last]]);
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      row += x.strides[axis];
      if (++at[axis] < x.shape[axis]) break;
      row -= at[axis] * x.strides[axis];
      at[axis] = 0;
    }
    if (axis < 0) return;
  }
}

template <class T, class Key>
void count(const Histogram::Args& args, std::vector<double>& counts) {
  const std::vector<Key> edges = edges_of<Key>(args);
  for_each<T>(args.x, [&](T element) {
    const Key x = static_cast<Key>(element);
    std::int64_t bin = -1;
    if (!edges.empty()) {
      bin = edge_bin(x, edges);
    } else if constexpr (std::is_integral_v<Key>) {
      bin = whole_bin(x, args);
    } else {
      bin = even_bin(x, args);
    }
    if (bin >= 0) counts[static_cast<std::size_t>(bin)] += 1;
  });
}

}  // namespace

Cost Histogram::cost(const Args& args) {
  const auto size = static_cast<double>(args.size());
  const auto bins = static_cast<double>(args.bins());
  const double written = bins * static_cast<double>(size_of(args.counts.dtype));
  double bytes =
      size * static_cast<double>(size_of(args.x.dtype)) + written * (args.accumulate ? 2 : 1);
  if (!args.even()) bytes += (bins + 1) * static_cast<double>(size_of(args.edges.dtype));
  return {.bytes = bytes, .operations = size, .written = written};
}

void Histogram::reference(const Args& args, Oracle& oracle) {
  Oracle::Output& output = oracle.outputs.at(0);
  std::fill(output.value.begin(), output.value.end(), 0.0);
  if (args.accumulate) {
    visit<std::int32_t, std::int64_t>(args.counts.dtype, [&]<class T>() {
      const auto counts = args.counts.view<const T, 1>();
      for (std::int64_t b = 0; b < args.bins(); ++b) {
        output.value[static_cast<std::size_t>(b)] = static_cast<double>(counts(b));
      }
    });
  }
  visit<float, double, f16, bf16, std::uint8_t, std::uint16_t, std::int32_t, std::int64_t>(
      args.x.dtype, [&]<class T>() {
        using Float = std::conditional_t<std::is_same_v<T, double>, double, float>;
        count<T, std::conditional_t<std::is_integral_v<T>, std::int64_t, Float>>(args,
                                                                                 output.value);
      });
}

/// Returns zero tolerance: counts are integers and must be equal.
Tolerance Histogram::tolerance(const Args&, const RungInfo&, Values) { return {}; }

}  // namespace rung
