// SPDX-License-Identifier: Apache-2.0
// attention / simd
//
// Idea     Compute both products in register tiles. 64 queries of all heads that share a head of K
//          and V are transposed, so that a vector holds one element of 16 queries (AVX-512). The
//          scores of 64 keys are transposed, too, so maximum and sum need no horizontal reduction;
//          exp is a polynomial.
// Changes  against online_tiled: vector code; a register tile of 4 x 4 vectors does 16
//          multiply-adds per 8 loads. K and V are converted and padded once per 64 queries.
// Cost     2 (D + Dv) operations per score. A head of K and V is read once per 64 rows.
// Limits   All valid arguments; one thread.
// Source   T. Dao and others, FlashAttention, 2022; K. Goto & R. van de Geijn, Anatomy of
//          high-performance matrix multiplication, 2008, for register tiles.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/load_e4m3-inl.hpp"
#include "rung/cpu/vector_exp2-inl.hpp"
#include "rung/ops/attention/cpu/detail/block.hpp"
#include "rung/ops/attention/cpu/detail/heads.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::attention_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::exp2;
using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::load_e4m3;
using cpu::HWY_NAMESPACE::log2_e;

// A multiply-add has a latency of 4 cycles and a throughput of two per cycle: 8 independent sums
// hide the latency, 16 halve the loads per multiply-add. AVX2 has half as many registers, which fit
// 8 sums and their operands.
#if HWY_TARGET <= HWY_AVX3
constexpr int tile_vectors = 4;
#else
constexpr int tile_vectors = 2;
#endif
constexpr int tile_rows = 4;

template <class T>
std::int64_t lanes() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}
template <class T>
std::int64_t round_up_to_tile(std::int64_t columns) {
  return round_up(columns, tile_vectors * lanes<T>());
}

/// Computes c[i][j] += sum over p < depth of a[i * a_row + p * a_step] b[p * b_row + j], for Rows
/// rows and Vectors vectors of columns.
template <int Rows, int Vectors, class T>
HWY_INLINE void multiply_add(const T* a, std::int64_t a_row, std::int64_t a_step, const T* b,
                             std::int64_t b_row, std::int64_t depth, T* c, std::int64_t c_row) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t n = lanes<T>();
  V sum[Rows][Vectors];
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) sum[i][j] = hn::LoadU(d, c + i * c_row + j * n);
  }
  for (std::int64_t p = 0; p < depth; ++p) {
    V row[Vectors];
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) row[j] = hn::LoadU(d, b + p * b_row + j * n);
#pragma GCC unroll 8
    for (int i = 0; i < Rows; ++i) {
      const V element = hn::Set(d, a[i * a_row + p * a_step]);
#pragma GCC unroll 4
      for (int j = 0; j < Vectors; ++j) sum[i][j] = hn::MulAdd(element, row[j], sum[i][j]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Vectors; ++j) hn::StoreU(sum[i][j], d, c + i * c_row + j * n);
  }
}

template <class Sum, class T>
HWY_INLINE auto load_elements(const T* from) {
  const hn::ScalableTag<Sum> d;
  if constexpr (std::is_same_v<T, e4m3>) {
    return load_e4m3(d, from);
  } else {
    return load_as(d, from);
  }
}

/// Converts `rows` rows of a matrix with any strides to rows of Sum, `pitch` elements apart.
/// Columns from `width` to `pitch` and rows from `rows` to `padded` are filled with zeros.
template <class T, class Sum>
void copy_rows(const T* from, std::int64_t row_stride, std::int64_t stride, std::int64_t rows,
               std::int64_t padded, std::int64_t width, Sum* to, std::int64_t pitch) {
  const hn::ScalableTag<Sum> d;
  const std::int64_t n = lanes<Sum>();
  for (std::int64_t row = 0; row < padded; ++row, from += row_stride, to += pitch) {
    std::int64_t at = 0;
    if (row < rows && stride == 1) {
      for (; at + n <= width; at += n) hn::StoreU(load_elements<Sum>(from + at), d, to + at);
    }
    if (row < rows) {
      for (; at < width; ++at) to[at] = static_cast<Sum>(from[at * stride]);
    }
    std::fill(to + at, to + pitch, Sum{0});
  }
}

/// Copies `keys` rows of k or v from `first` on as copy_rows() does. `row_at(j)` is the address of
/// row j; rows of one page, or all without pages, are one stride apart.
template <class T, class Sum, class RowAt>
void copy_keys(const View<const T, 4>& tensor, std::int64_t page_keys, RowAt&& row_at,
               std::int64_t first, std::int64_t keys, std::int64_t padded, Sum* to,
               std::int64_t pitch) {
  for (std::int64_t at = 0; at < keys;) {
    const std::int64_t left = keys - at;
    const std::int64_t run =
        page_keys == 0 ? left : std::min(left, page_keys - (first + at) % page_keys);
    copy_rows(row_at(first + at), tensor.strides[2], tensor.strides[3], run,
              run == left ? padded - at : run, tensor.shape[3], to + at * pitch, pitch);
    at += run;
  }
}

/// Scratch memory of one block of rows.
template <class Sum>
struct Scratch {
  std::int64_t value_pitch;  // Dv, padded to a register tile
  Sum* q;                    // D x 64 rows, transposed
  Sum* k;                    // 64 keys x D
  Sum* v;                    // 64 keys x value_pitch
  Sum* weight;               // 64 keys x 64 rows: scores, then weights
  Sum* o;                    // 64 rows x value_pitch
  Sum* maximum;              // per row, of scores times log2(e)
  Sum* sum;
  Sum* rescale;

  Scratch(std::int64_t width, std::int64_t value_width, Sum* memory)
      : value_pitch(round_up_to_tile<Sum>(value_width)) {
    const auto take = [&](std::int64_t count) {
      Sum* const taken = memory;
      memory += full_lines(count);
      return taken;
    };
    q = take(width * block_rows);
    k = take(key_tile * width);
    v = take(key_tile * value_pitch);
    weight = take(key_tile * block_rows);
    o = take(block_rows * value_pitch);
    maximum = take(block_rows);
    sum = take(block_rows);
    rescale = take(block_rows);
  }
  static std::int64_t elements(std::int64_t width, std::int64_t value_width) {
    return full_lines(width * block_rows) + full_lines(key_tile * width) +
           (key_tile + block_rows) * full_lines(round_up_to_tile<Sum>(value_width)) +
           full_lines(key_tile * block_rows) + 3 * full_lines(block_rows);
  }
  /// Returns `count` rounded up to full cache lines of f32 (16 elements).
  static std::int64_t full_lines(std::int64_t count) { return round_up(count, 16); }
};

/// Replaces the scores of 64 keys and `rows` rows (full vectors) by weights; updates the maxima and
/// sums and stores the factors that rescale earlier sums. Returns whether any factor differs from
/// 1.
template <class Sum>
bool soften(const Scratch<Sum>& s, std::int64_t rows, std::int64_t keys) {
  const hn::ScalableTag<Sum> d;
  bool changed = false;
  for (std::int64_t r = 0; r < rows; r += lanes<Sum>()) {
    const auto before = hn::LoadU(d, s.maximum + r);
    auto maximum = before;
    // Max of a NaN and a number returns the second operand; the sum restores the NaN.
    for (std::int64_t j = 0; j < keys; ++j) {
      maximum = hn::Max(hn::LoadU(d, s.weight + j * block_rows + r), maximum);
    }
    const auto rescale = exp2<false>(d, hn::Sub(before, maximum));
    auto sum = hn::Mul(hn::LoadU(d, s.sum + r), rescale);
    for (std::int64_t j = 0; j < keys; ++j) {
      Sum* const at = s.weight + j * block_rows + r;
      const auto weight = exp2<false>(d, hn::Sub(hn::LoadU(d, at), maximum));
      hn::StoreU(weight, d, at);
      sum = hn::Add(sum, weight);
    }
    hn::StoreU(maximum, d, s.maximum + r);
    hn::StoreU(sum, d, s.sum + r);
    hn::StoreU(rescale, d, s.rescale + r);
    changed = changed || !hn::AllTrue(d, hn::Eq(before, maximum));
  }
  return changed;
}

template <class Sum>
void scale_row(Sum* row, std::int64_t width, Sum factor) {
  const hn::ScalableTag<Sum> d;
  for (std::int64_t c = 0; c < width; c += lanes<Sum>()) {
    hn::StoreU(hn::Mul(hn::LoadU(d, row + c), hn::Set(d, factor)), d, row + c);
  }
}

/// Returns cap tanh(x / cap) from tanh t = 1 - 2 / (1 + exp(2 t)), accurate to a few roundings of
/// cap; `per_cap` is 2 log2(e) / cap.
template <class D, class V>
HWY_INLINE V capped(D d, V x, V cap, V per_cap) {
  const V power = exp2<true>(d, hn::Mul(x, per_cap));
  return hn::NegMulAdd(hn::Set(d, 2), hn::Div(cap, hn::Add(hn::Set(d, 1), power)), cap);
}

/// The rule of the scores, with the slope, diagonal and bias of each row of a block.
template <class Sum>
struct RowRule {
  Sum soft_cap;
  bool has_slopes;
  bool has_bias;
  std::int64_t bias_stride;  // from key to key
  Sum slope[block_rows];
  std::int64_t diagonal[block_rows];
  const Sum* bias[block_rows];
};

/// Replaces the products of 64 keys, the first of them `first`, with `block_count` rows, multiplied
/// by the scale, by scores times log2(e). `rows` are full vectors.
template <class Sum>
void apply_rule(const RowRule<Sum>& rule, std::int64_t block_count, std::int64_t rows,
                std::int64_t first, std::int64_t keys, Sum* scores) {
  const hn::ScalableTag<Sum> d;
  const auto to_log2 = hn::Set(d, log2_e<Sum>);
  const auto cap = hn::Set(d, rule.soft_cap);
  // Finite, so that a score of 0 stays 0 for any cap.
  const auto per_cap = hn::Set(d, rule.soft_cap == 0 ? Sum{0}
                                                     : std::min(2 * log2_e<Sum> / rule.soft_cap,
                                                                std::numeric_limits<Sum>::max()));
  Sum ahead[block_rows] = {};  // of the row's diagonal, the first key
  for (std::int64_t r = 0; r < block_count; ++r) {
    ahead[r] = static_cast<Sum>(first - rule.diagonal[r]);
  }
  for (std::int64_t r = 0; r < rows; r += lanes<Sum>()) {
    const auto slope = hn::LoadU(d, rule.slope + r);
    const auto start = hn::LoadU(d, ahead + r);
    for (std::int64_t j = 0; j < keys; ++j) {
      Sum* const at = scores + j * block_rows + r;
      auto score = hn::LoadU(d, at);
      if (rule.soft_cap != 0) score = capped(d, score, cap, per_cap);
      if (rule.has_slopes) {
        const auto distance = hn::Abs(hn::Add(start, hn::Set(d, static_cast<Sum>(j))));
        score = hn::NegMulAdd(slope, distance, score);
      }
      hn::StoreU(hn::Mul(score, to_log2), d, at);
    }
  }
  for (std::int64_t r = 0; r < block_count && rule.has_bias; ++r) {
    const Sum* from = rule.bias[r] + first * rule.bias_stride;
    for (std::int64_t j = 0; j < keys; ++j, from += rule.bias_stride) {
      scores[j * block_rows + r] += log2_e<Sum> * *from;
    }
  }
}

template <class T, class K>
void attend(const Attention::Args& args, const RowKeyBlock& block, void* memory) {
  using Sum = Accumulator<T>;
  constexpr Sum infinity = std::numeric_limits<Sum>::infinity();
  const Heads<T, K> p = attention_heads<T, K>(args);
  const Scratch<Sum> s(p.width(), p.value_width(), static_cast<Sum*>(memory));
  const std::int64_t vector = lanes<Sum>();
  // Few rows use one vector per key of scores, more rows full register tiles.
  const bool narrow = block.rows <= vector;
  const std::int64_t rows = narrow ? vector : round_up_to_tile<Sum>(block.rows);
  const std::int64_t q_pitch = narrow ? vector : block_rows;
  const auto head_of = [&](std::int64_t r) {
    return block.g * p.group + (block.first_row + r) % p.group;
  };
  const auto query_of = [&](std::int64_t r) { return (block.first_row + r) / p.group; };
  const auto mask = p.mask(block.b);
  const View<const T, 3> of_queries = p.q_of(block.b);
  std::int64_t begin[block_rows];  // row r sees keys [begin[r], end[r]) of the block
  std::int64_t end[block_rows];
  const T* queries[block_rows];
  for (std::int64_t r = 0; r < block.rows; ++r) {
    begin[r] = std::max(mask.first_key(query_of(r)), block.first_key);
    end[r] = std::min(mask.end_key(query_of(r)), block.last_key);
    queries[r] = &of_queries(head_of(r), query_of(r), 0);
  }
  const bool is_plain = p.rule.is_plain();
  RowRule<Sum> rule;
  if (!is_plain) {
    rule = {.soft_cap = p.rule.soft_cap,
            .has_slopes = p.rule.slopes.data != nullptr,
            .has_bias = p.rule.bias.data != nullptr,
            .bias_stride = p.rule.bias.strides[3],
            .slope = {},
            .diagonal = {},
            .bias = {}};
    for (std::int64_t r = 0; r < block.rows; ++r) {
      rule.diagonal[r] = mask.diagonal(query_of(r));
      if (rule.has_slopes) rule.slope[r] = p.rule.slopes(head_of(r));
      if (rule.has_bias) rule.bias[r] = &p.rule.bias(block.b, head_of(r), query_of(r), 0);
    }
  }
  if (block.rows < rows) std::fill_n(s.q, p.width() * q_pitch, Sum{0});
  // The softmax uses powers of 2: fold log2(e) into the scale, or let apply_rule() multiply by it.
  const Sum scale = p.rule_of(block.b, block.g).scale;
  const Sum factor = is_plain ? scale * log2_e<Sum> : scale;
  for (std::int64_t i = 0; i < p.width(); ++i) {
    Sum* const to = s.q + i * q_pitch;
    for (std::int64_t r = 0; r < block.rows; ++r) {
      to[r] = factor * static_cast<Sum>(queries[r][i * p.q.strides[3]]);
    }
  }
  // Finite, so that a score of -infinity minus it is -infinity, not NaN.
  std::fill_n(s.maximum, block_rows, std::numeric_limits<Sum>::lowest());
  std::fill_n(s.sum, block_rows, Sum{0});
  std::fill_n(s.o, round_up(block.rows, tile_rows) * s.value_pitch, Sum{0});

  const std::int64_t page_keys = p.page_table.data == nullptr ? 0 : p.k.shape[2];
  const auto key_at = [&](std::int64_t j) { return p.key(block.b, block.g, j).data; };
  const auto value_at = [&](std::int64_t j) { return p.value(block.b, block.g, j).data; };
  const std::int64_t last_row = block.rows - 1;
  for (std::int64_t first = begin[0]; first < end[last_row]; first += key_tile) {
    const std::int64_t keys = std::min(key_tile, end[last_row] - first);
    const std::int64_t step = narrow ? 2 * tile_rows : tile_rows;
    const std::int64_t padded = round_up(keys, step);
    copy_keys(p.k, page_keys, key_at, first, keys, padded, s.k, p.width());
    copy_keys(p.v, page_keys, value_at, first, keys, keys, s.v, s.value_pitch);
    std::fill_n(s.weight, padded * block_rows, Sum{0});
    for (std::int64_t j = 0; j < keys; j += step) {
      const Sum* const k = s.k + j * p.width();
      Sum* const scores = s.weight + j * block_rows;
      if (narrow) {
        multiply_add<2 * tile_rows, 1>(k, p.width(), 1, s.q, q_pitch, p.width(), scores,
                                       block_rows);
      }
      for (std::int64_t r = 0; r < rows && !narrow; r += tile_vectors * vector) {
        multiply_add<tile_rows, tile_vectors>(k, p.width(), 1, s.q + r, q_pitch, p.width(),
                                              scores + r, block_rows);
      }
    }
    if (!is_plain) apply_rule(rule, block.rows, rows, first, keys, s.weight);
    // The first row sees the fewest keys at the end of the tile, the last row at its beginning.
    const bool masked = end[0] < first + keys || begin[last_row] > first;
    const auto range_of = [&](std::int64_t r) {
      const std::int64_t from = std::clamp<std::int64_t>(begin[r] - first, 0, keys);
      return std::pair(from, std::clamp(end[r] - first, from, keys));
    };
    for (std::int64_t r = 0; r < block.rows && masked; ++r) {
      const auto [from, to] = range_of(r);
      for (std::int64_t j = 0; j < from; ++j) s.weight[j * block_rows + r] = -infinity;
      for (std::int64_t j = to; j < keys; ++j) s.weight[j * block_rows + r] = -infinity;
    }
    if (soften(s, rows, keys)) {
      for (std::int64_t r = 0; r < block.rows; ++r) {
        scale_row(s.o + r * s.value_pitch, s.value_pitch, s.rescale[r]);
      }
    }
    for (std::int64_t c = 0; c < s.value_pitch; c += tile_vectors * vector) {
      if (masked) {
        // Unseen values are skipped, not multiplied by 0: they may be NaN.
        for (std::int64_t r = 0; r < block.rows; ++r) {
          const auto [from, to] = range_of(r);
          multiply_add<1, tile_vectors>(s.weight + from * block_rows + r, 1, block_rows,
                                        s.v + from * s.value_pitch + c, s.value_pitch, to - from,
                                        s.o + r * s.value_pitch + c, s.value_pitch);
        }
        continue;
      }
      for (std::int64_t r = 0; r < block.rows; r += tile_rows) {
        multiply_add<tile_rows, tile_vectors>(s.weight + r, 1, block_rows, s.v + c, s.value_pitch,
                                              keys, s.o + r * s.value_pitch + c, s.value_pitch);
      }
    }
  }

  const View<T, 3> results = p.o_of(block.b);
  for (std::int64_t r = 0; r < block.rows; ++r) {
    Sum sum = s.sum[r];
    Sum* const o = s.o + r * s.value_pitch;
    if (block.partial != nullptr) {
      auto* const partial = static_cast<Sum*>(block.partial) + r * (p.value_width() + 2);
      std::copy_n(o, p.value_width(), partial);
      partial[p.value_width()] = s.maximum[r];
      partial[p.value_width() + 1] = sum;
      continue;
    }
    Sum maximum = s.maximum[r];
    if (p.sinks.data != nullptr) {
      scale_row(o, s.value_pitch, add_sink(sink_of(p, head_of(r)), maximum, sum));
    }
    const Sum divisor = divisor_of(sum);
    const Sum of_values = p.value_scale(block.b, block.g);
    for (std::int64_t c = 0; c < p.value_width(); ++c) {
      results(head_of(r), query_of(r), c) = static_cast<T>(o[c] / divisor * of_values);
    }
    p.write_lse(block.b, head_of(r), query_of(r),
                sum == 0 ? -infinity : maximum / log2_e<Sum> + std::log(sum));
  }
}

}  // namespace

Attend* attend_of(const Attention::Args& args) {
  Attend* chosen = nullptr;
  visit_types(args, [&]<class T, class K>() { chosen = attend<T, K>; });
  return chosen;
}

std::int64_t scratch_of(std::int64_t width, std::int64_t value_width, bool is_double) {
  return is_double ? 8 * Scratch<double>::elements(width, value_width)
                   : 4 * Scratch<float>::elements(width, value_width);
}

}  // namespace rung::attention_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace attention_cpu {
HWY_EXPORT(attend_of);
HWY_EXPORT(scratch_of);
Attend* attend_for(const Attention::Args& args) { return HWY_DYNAMIC_DISPATCH(attend_of)(args); }
std::int64_t scratch_bytes(const Attention::Args& args) {
  return HWY_DYNAMIC_DISPATCH(scratch_of)(args.width(), args.value_width(),
                                          args.q.dtype == DType::f64);
}
}  // namespace attention_cpu

namespace {
using namespace attention_cpu;

void run(const Attention::Args& args, Context& context) {
  void* const scratch = context.workspace(static_cast<std::size_t>(scratch_bytes(args)));
  Attend* const attend = attend_for(args);
  for (std::int64_t b = 0; b < args.batch(); ++b) {
    const std::int64_t rows = stacked_rows(args, b);
    for (std::int64_t g = 0; g < args.kv_heads(); ++g) {
      for (std::int64_t row = 0; row < rows; row += block_rows) {
        attend(args,
               {.b = b,
                .g = g,
                .first_row = row,
                .rows = std::min(block_rows, rows - row),
                .first_key = 0,
                .last_key = args.keys()},
               scratch);
      }
    }
  }
}

// Not a candidate: `threads` with one thread runs the same code.
const Rung<Attention> self{
    {.name = "simd", .step = 30, .after = "online_tiled", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
#endif
