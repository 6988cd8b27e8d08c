// SPDX-License-Identifier: Apache-2.0
// histogram / vector bins
//
// Idea     Vector code converts a chunk of x to a chunk of bins in L1; the bins are then counted.
//          If one bin dominates 16 samples of a chunk, vectors find the elements of other bins, and
//          only these are counted one by one.
// Changes  Against private_tables: the bin arithmetic takes one vector per 8 or 16 elements, and
//          dominant values do not wait for each other's stores.
// Cost     x is read once; a load, an addition and a store per element, in cache, plus the vector
//          code.
// Limits   Up to 2^22 bins; one thread. Given edges are searched element by element.
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/ops/histogram/cpu/detail/around-inl.hpp"
#include "rung/ops/histogram/cpu/detail/tables.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::histogram_cpu::HWY_NAMESPACE {
namespace {
namespace cpu_n = rung::cpu::HWY_NAMESPACE;

/// Computes indices[i] = the bin of x[i], or `bins` for a value outside: a counter for such values
/// saves a branch. Rounds each operation separately, as bins.hpp does, which gives the same bins on
/// every instruction set.
template <class Real, class T>
void find_bins(const EvenBins<Real>& even, std::uint32_t bins, const T* x, std::int64_t count,
               std::uint32_t* indices) {
  const hn::ScalableTag<Real> d;
  const hn::Rebind<std::int32_t, decltype(d)> d32;
  const hn::Rebind<std::uint32_t, decltype(d)> du32;
  const auto low = hn::Set(d, even.low);
  const auto high = hn::Set(d, even.high);
  const auto scale = hn::Set(d, even.scale);
  const auto last = hn::Set(d32, even.last);
  const auto outside = hn::Set(d, static_cast<Real>(-1));
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto bins_of = [&](auto value) HWY_ATTR {
    const auto inside = hn::And(hn::Ge(value, low), hn::Le(value, high));
    const auto place = hn::Mul(hn::Sub(value, low), scale);
    // -1 is the largest unsigned number: the minimum maps it to `bins`.
    const auto chosen = hn::IfThenElse(inside, place, outside);
    const auto bin = [&]() HWY_ATTR {
      if constexpr (sizeof(Real) == 8) {
        return hn::DemoteTo(d32, chosen);
      } else {
        return hn::ConvertTo(d32, chosen);
      }
    }();
    return hn::Min(hn::BitCast(du32, hn::Min(bin, last)), hn::Set(du32, bins));
  };
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    hn::StoreU(bins_of(cpu_n::load_as(d, x + i)), du32, indices + i);
  }
  if (i < count) {
    HWY_ALIGN std::uint32_t rest[hn::MaxLanes(du32)];
    hn::Store(bins_of(cpu_n::load_as_n(d, x + i, static_cast<std::size_t>(count - i))), du32, rest);
    for (std::int64_t j = 0; i < count; ++i, ++j) indices[i] = rest[j];
  }
}

/// Computes the bins of integers that are their own bins, in 32 bits: values below `low` wrap to
/// numbers above all bins.
template <class T>
void own_bins(std::uint32_t low, std::uint32_t bins, const T* x, std::int64_t count,
              std::uint32_t* indices) {
  const hn::ScalableTag<std::uint32_t> d;
  using Bits = std::make_unsigned_t<T>;
  const hn::Rebind<Bits, decltype(d)> stored;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto lows = hn::Set(d, low);
  const auto outside = hn::Set(d, bins);
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto bits = hn::LoadU(stored, reinterpret_cast<const Bits*>(x + i));
    const auto value = [&]() HWY_ATTR {
      if constexpr (sizeof(T) == 4) {
        return bits;
      } else {
        return hn::PromoteTo(d, bits);
      }
    }();
    hn::StoreU(hn::Min(hn::Sub(value, lows), outside), d, indices + i);
  }
  for (; i < count; ++i) {
    const std::uint32_t difference = static_cast<std::uint32_t>(x[i]) - low;
    indices[i] = difference < bins ? difference : bins;
  }
}

template <class T>
void find_bins(const WholeBins& whole, std::uint32_t bins, const T* x, std::int64_t count,
               std::uint32_t* indices) {
  if constexpr (std::is_same_v<T, std::uint16_t> || std::is_same_v<T, std::int32_t>) {
    if (ShortBins<true>::takes(whole)) {
      return own_bins(static_cast<std::uint32_t>(whole.low), bins, x, count, indices);
    }
  }
  const WholeBins copy = whole;  // stores to indices cannot alias it
  for (std::int64_t i = 0; i < count; ++i) {
    indices[i] = std::min(static_cast<std::uint32_t>(copy(x[i])), bins);
  }
}

template <class Real, class T>
void find_bins(const EdgeBins<Real>& edges, std::uint32_t bins, const T* x, std::int64_t count,
               std::uint32_t* indices) {
  for (std::int64_t i = 0; i < count; ++i) {
    indices[i] = std::min(static_cast<std::uint32_t>(edges(key_of(x[i]))), bins);
  }
}

constexpr std::int64_t chunk = 2048;
constexpr int samples = 16;
constexpr int dominating = 13;

void add(const IndexTables& tables, const std::uint32_t* indices, std::int64_t count) {
  std::uint32_t* const table = tables.data;
  std::int64_t i = 0;
  if (tables.copies == 4) {
    for (; i + 4 <= count; i += 4) {
      for (int k = 0; k < 4; ++k) ++table[k * tables.pitch + indices[i + k]];
    }
  }
  for (; i < count; ++i) ++table[indices[i]];
}

/// Returns the most frequent index of the samples if it dominates them, else -1.
std::int64_t dominating_index(const std::uint32_t* indices, std::int64_t count) {
  const std::int64_t step = count / samples;
  if (step == 0) return -1;
  // Majority vote (Boyer & Moore): pairs of different samples cancel.
  std::uint32_t candidate = 0;
  int lead = 0;
  for (int i = 0; i < samples; ++i) {
    const std::uint32_t index = indices[i * step];
    if (lead == 0) candidate = index;
    lead += index == candidate ? 1 : -1;
  }
  int times = 0;
  for (int i = 0; i < samples; ++i) times += indices[i * step] == candidate ? 1 : 0;
  return times >= dominating ? std::int64_t{candidate} : -1;
}

void add_sampled(const IndexTables& tables, const std::uint32_t* indices, std::int64_t count) {
  const std::int64_t most = dominating_index(indices, count);
  if (most < 0) return add(tables, indices, count);
  const std::int64_t step = tables.copies == 4 ? tables.pitch : 0;
  std::uint32_t* const four[4] = {tables.data, tables.data + step, tables.data + 2 * step,
                                  tables.data + 3 * step};
  tables.data[most] += static_cast<std::uint32_t>(
      count_around(static_cast<std::uint32_t>(most), indices, count, four));
}

void vector_bins(const Histogram::Args& args, cpu::Range range, const IndexTables& tables) {
  const auto outside = static_cast<std::uint32_t>(args.bins());
  visit_values(args.x.dtype, [&]<class T>() {
    with_bins<BinKey<T>>(args, [&](const auto& bins) {
      std::uint32_t indices[chunk];
      for_each_piece<T>(args.x, range, [&](const T* x, std::int64_t count) {
        for (std::int64_t begin = 0; begin < count; begin += chunk) {
          const std::int64_t size = std::min(chunk, count - begin);
          find_bins(bins, outside, x + begin, size, indices);
          add_sampled(tables, indices, size);
        }
      });
    });
  });
}

}  // namespace
}  // namespace rung::histogram_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung::histogram_cpu {
namespace {
HWY_EXPORT(vector_bins);
}  // namespace

void count_values(const Histogram::Args& args, cpu::Range range, const IndexTables& tables) {
  HWY_DYNAMIC_DISPATCH(vector_bins)(args, range, tables);
}

namespace {

void run(const Histogram::Args& args, Context& context) {
  IndexTables tables(args.bins());
  const auto bytes = static_cast<std::size_t>(tables.words()) * sizeof(std::uint32_t);
  tables.data = static_cast<std::uint32_t*>(context.workspace(bytes));
  for_each_round(args, [&](const Histogram::Args& part, cpu::Range range) {
    std::fill_n(tables.data, tables.words(), 0U);
    count_values(part, range, tables);
    store_counts(part, {0, args.bins()}, [&](std::int64_t b) {
      std::uint64_t sum = 0;
      for (int copy = 0; copy < tables.copies; ++copy) sum += tables.data[copy * tables.pitch + b];
      return sum;
    });
  });
}

Support supports(const Histogram::Args& args, const Context&) {
  return args.bins() <= max_bins ? supported : unsupported("more than 2^22 bins");
}

const Rung<Histogram> self{{.name = "vector_bins",
                            .step = 30,
                            .after = "private_tables",
                            .teaching = true,
                            .supports = supports,
                            .run = run}};
}  // namespace
}  // namespace rung::histogram_cpu
#endif
