// SPDX-License-Identifier: Apache-2.0
// attention_backward / simd
//
// Idea     Loop over tiles of 64 keys by 64 queries with five register-tiled products each: S = Q
//          K^T, dP = dO V^T, dV += P^T dO, dK += dS^T Q, dQ += dS K. K and V of a tile are
//          transposed once for all queries; P and dS stay in L1; exp is a polynomial.
// Changes  Vector code and register tiles: 16 multiply-adds per 8 loads (AVX-512) instead of one
//          per two. Sums of dK and dV stay in L2 during the loop over queries; sums of dQ, for all
//          queries of a group of heads, are updated once per tile of keys.
// Cost     6 D + 4 Dv operations per (query, key) pair. Converting Q and dO and updating dQ's
//          sums adds few operations per tile.
// Limits   All valid arguments; one thread. The sums of dQ take as much memory as Q in f32.
// Source   T. Dao, FlashAttention-2, 2023, algorithm 2; K. Goto & R. van de Geijn, Anatomy of
//          high-performance matrix multiplication, 2008, for register tiles.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "rung/core/integer.hpp"
#include "rung/cpu/foreach_target.hpp"
#include "rung/cpu/load-inl.hpp"
#include "rung/cpu/register_tile-inl.hpp"
#include "rung/cpu/vector_exp2-inl.hpp"
#include "rung/ops/attention_backward/cpu/detail/gradients.hpp"
#include "rung/ops/attention_backward/cpu/detail/key_range.hpp"

HWY_BEFORE_NAMESPACE();
namespace rung::attention_backward_cpu::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
using cpu::HWY_NAMESPACE::exp2;
using cpu::HWY_NAMESPACE::load_as;
using cpu::HWY_NAMESPACE::log2_e;
using cpu::HWY_NAMESPACE::RegisterTile;
using cpu::HWY_NAMESPACE::tile_vectors;

// A multiply-add has a latency of 4 cycles and a throughput of two per cycle: 8 independent sums
// hide the latency, 16 halve the loads per multiply-add. AVX2 has half as many registers, which fit
// 8 sums and their operands.
constexpr int rows_per_tile = 4;

template <class Sum>
constexpr std::int64_t lanes = cpu::HWY_NAMESPACE::lanes_of<Sum>;

/// Left operand of a product: element (i, p) is at data[i * row + p * step].
template <class Sum>
struct LeftMatrix {
  const Sum* data;
  std::int64_t row, step;
};
/// Right operand or result: rows of full vectors, `pitch` apart.
template <class Sum>
struct RowMatrix {
  Sum* data;
  std::int64_t pitch;
};

template <int Rows, int Vectors, class Sum>
HWY_INLINE void multiply_tile(const LeftMatrix<Sum>& a, const RowMatrix<Sum>& b, std::int64_t depth,
                              const RowMatrix<Sum>& c) {
  RegisterTile<Rows, Vectors, Sum> tile;
  tile.load(c.data, c.pitch);
  for (std::int64_t p = 0; p < depth; ++p) {
    tile.add(b.data + p * b.pitch, [&](int i) HWY_ATTR { return a.data[i * a.row + p * a.step]; });
  }
  tile.store(c.data, c.pitch);
}

template <int Vectors, class Sum>
HWY_INLINE void multiply_columns(const LeftMatrix<Sum>& a, const RowMatrix<Sum>& b,
                                 std::int64_t depth, const RowMatrix<Sum>& c, std::int64_t rows) {
  std::int64_t i = 0;
  for (; i + rows_per_tile <= rows; i += rows_per_tile) {
    multiply_tile<rows_per_tile, Vectors, Sum>({a.data + i * a.row, a.row, a.step}, b, depth,
                                               {c.data + i * c.pitch, c.pitch});
  }
  for (; i < rows; ++i) {
    multiply_tile<1, Vectors, Sum>({a.data + i * a.row, a.row, a.step}, b, depth,
                                   {c.data + i * c.pitch, c.pitch});
  }
}

/// Computes c += a b. A panel of b, `depth` rows of one register tile's width, stays in L1 for all
/// rows of a.
template <class Sum>
HWY_NOINLINE void multiply_add(const LeftMatrix<Sum>& a, const RowMatrix<Sum>& b,
                               std::int64_t depth, const RowMatrix<Sum>& c, std::int64_t rows,
                               std::int64_t columns) {
  constexpr std::int64_t wide = tile_vectors * lanes<Sum>;
  std::int64_t j = 0;
  for (; j + wide <= columns; j += wide) {
    multiply_columns<tile_vectors>(a, {b.data + j, b.pitch}, depth, {c.data + j, c.pitch}, rows);
  }
  for (; j < columns; j += lanes<Sum>) {
    multiply_columns<1>(a, {b.data + j, b.pitch}, depth, {c.data + j, c.pitch}, rows);
  }
}

/// Converts rows with any strides to rows of full vectors; pads with zeros past `width`.
template <class T, class Sum>
void convert_rows(const View<const T, 2>& from, std::int64_t first, std::int64_t rows,
                  const RowMatrix<Sum>& to) {
  const hn::ScalableTag<Sum> d;
  const std::int64_t width = from.shape[1];
  const std::int64_t stride = from.strides[1];
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* const row = from.data + (first + r) * from.strides[0];
    Sum* const out = to.data + r * to.pitch;
    std::int64_t at = 0;
    if (stride == 1) {
      for (; at + lanes<Sum> <= width; at += lanes<Sum>) {
        hn::StoreU(load_as(d, row + at), d, out + at);
      }
    }
    for (; at < width; ++at) out[at] = static_cast<Sum>(row[at * stride]);
    std::fill(out + at, out + to.pitch, Sum{0});
  }
}

/// Converts and transposes `rows` rows into `width` rows of key_tile elements; columns past `rows`
/// become zero.
template <class T, class Sum>
void transpose_rows(const View<const T, 2>& from, std::int64_t first, std::int64_t rows, Sum* to) {
  const std::int64_t width = from.shape[1];
  if (rows < key_tile) std::fill_n(to, width * key_tile, Sum{0});
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* const row = from.data + (first + r) * from.strides[0];
    for (std::int64_t d = 0; d < width; ++d) {
      to[d * key_tile + r] = static_cast<Sum>(row[d * from.strides[1]]);
    }
  }
}

template <class T, class Sum>
void store_rows(const RowMatrix<Sum>& from, std::int64_t rows, const View<T, 2>& to,
                std::int64_t first) {
  for (std::int64_t r = 0; r < rows; ++r) {
    T* const row = to.data + (first + r) * to.strides[0];
    for (std::int64_t d = 0; d < to.shape[1]; ++d) {
      row[d * to.strides[1]] = static_cast<T>(from.data[r * from.pitch + d]);
    }
  }
}

template <class T>
void store_zeros(const View<T, 2>& to, std::int64_t first, std::int64_t end) {
  for (std::int64_t r = first; r < end; ++r) {
    for (std::int64_t d = 0; d < to.shape[1]; ++d) to(r, d) = T{};
  }
}

std::int64_t full_lines(std::int64_t elements) { return round_up(elements, 16); }

/// Scratch memory of a thread.
template <class Sum>
struct GradientScratch {
  std::int64_t pitch, value_pitch;  // elements per row of D and of Dv
  Sum *k_columns, *v_columns;       // D and Dv rows of a tile of keys
  Sum *k, *dk, *dv;                 // a row per key of a tile
  Sum *q, *dout;                    // a row per query of a tile
  Sum *p, *ds;                      // a row per query, a column per key
  Sum *lse, *row_sum;               // per row of the group; lse times log2(e)
  Sum* dq;                          // one row per row of the group
  std::int64_t elements = 0;

  GradientScratch(std::int64_t width, std::int64_t value_width, std::int64_t rows, Sum* memory)
      : pitch(round_up(width, lanes<Sum>)), value_pitch(round_up(value_width, lanes<Sum>)) {
    const auto take = [&](std::int64_t count) {
      Sum* const taken = memory == nullptr ? nullptr : memory + elements;
      elements += full_lines(count);
      return taken;
    };
    k_columns = take(width * key_tile);
    v_columns = take(value_width * key_tile);
    k = take(key_tile * pitch);
    dk = take(key_tile * pitch);
    dv = take(key_tile * value_pitch);
    q = take(query_tile * pitch);
    dout = take(query_tile * value_pitch);
    p = take(query_tile * key_tile);
    ds = take(query_tile * key_tile);
    lse = take(rows);
    row_sum = take(rows);
    dq = take(rows * pitch);
  }
};

/// Replaces a row of scores by P and a row of dP by scale dS; keys outside [first, end) get zeros.
template <class Sum>
HWY_INLINE void weigh_row(Sum* score, Sum* dp, Sum scale, Sum lse, Sum row_sum, std::int64_t first,
                          std::int64_t end) {
  const hn::ScalableTag<Sum> d;
  const auto before = [&](std::int64_t count) HWY_ATTR {
    return hn::FirstN(d, static_cast<std::size_t>(std::clamp<std::int64_t>(count, 0, lanes<Sum>)));
  };
  for (std::int64_t j = 0; j < key_tile; j += lanes<Sum>) {
    const auto exponent =
        hn::MulSub(hn::LoadU(d, score + j), hn::Set(d, scale * log2_e<Sum>), hn::Set(d, lse));
    const auto mask = hn::AndNot(before(first - j), before(end - j));
    const auto weight = hn::IfThenElseZero(mask, exp2<true>(d, exponent));
    const auto difference = hn::Sub(hn::LoadU(d, dp + j), hn::Set(d, row_sum));
    hn::StoreU(weight, d, score + j);
    hn::StoreU(hn::Mul(hn::Mul(weight, difference), hn::Set(d, scale)), d, dp + j);
  }
}

template <class T>
void differentiate(const AttentionBackward::Args& args, const KeyRange& range, void* memory) {
  using Sum = Accumulator<T>;
  const Gradients<T> call = attention_gradients<T>(args);
  const std::int64_t group_rows = call.group * call.queries();
  const GradientScratch<Sum> s(call.width(), call.value_width(), group_rows,
                               static_cast<Sum*>(memory));
  const auto mask = call.mask(range.b);
  const auto k = call.of_keys(call.k, range.b).at(range.g);
  const auto v = call.of_keys(call.v, range.b).at(range.g);
  const auto dk = call.of_keys(call.dk, range.b).at(range.g);
  const auto dv = call.of_keys(call.dv, range.b).at(range.g);
  const std::int64_t last_key = std::min(range.last_key, call.key_rows(range.b).count);
  Sum* const dq = range.partial_dq == nullptr ? s.dq : static_cast<Sum*>(range.partial_dq);
  for (std::int64_t head = 0; head < call.group; ++head) {
    const std::int64_t h = range.g * call.group + head;
    const std::int64_t first_row = head * call.queries();
    std::fill_n(dq + first_row * s.pitch, mask.queries * s.pitch, Sum{0});
    for (std::int64_t i = 0; i < mask.queries; ++i) {
      const bool sees = mask.end_key(i) > range.first_key && mask.first_key(i) < last_key;
      s.lse[first_row + i] =
          sees ? log2_e<Sum> * finite_or_infinite_lse(call, range.b, h, i) : Sum{0};
      s.row_sum[first_row + i] = sees ? row_sum(call, range.b, h, i) : Sum{0};
    }
  }

  // Keys before the first query's window have no gradient and may hold NaN.
  const std::int64_t first_seen =
      std::clamp(mask.first_key(0), range.first_key, std::max(range.first_key, last_key));
  store_zeros(dk, range.first_key, first_seen);
  store_zeros(dv, range.first_key, first_seen);
  for (std::int64_t key = first_seen; key < last_key; key += key_tile) {
    const std::int64_t keys = std::min(key_tile, last_key - key);
    const std::int64_t present = std::clamp<std::int64_t>(mask.length - key, 0, keys);
    transpose_rows(k, key, present, s.k_columns);
    transpose_rows(v, key, present, s.v_columns);
    convert_rows(k, key, present, RowMatrix<Sum>{s.k, s.pitch});
    std::fill_n(s.dk, keys * s.pitch, Sum{0});
    std::fill_n(s.dv, keys * s.value_pitch, Sum{0});
    const std::int64_t first_query = mask.first_query(key);
    const std::int64_t end_query = mask.end_query(key + std::max<std::int64_t>(present, 1) - 1);
    for (std::int64_t head = 0; head < call.group; ++head) {
      const std::int64_t h = range.g * call.group + head;
      const auto q = call.of_queries(call.q, range.b).at(h);
      const auto dout = call.of_queries(call.dout, range.b).at(h);
      for (std::int64_t i = first_query; i < end_query; i += query_tile) {
        const std::int64_t rows = std::min(query_tile, end_query - i);
        const std::int64_t row = head * call.queries() + i;
        convert_rows(q, i, rows, RowMatrix<Sum>{s.q, s.pitch});
        convert_rows(dout, i, rows, RowMatrix<Sum>{s.dout, s.value_pitch});
        std::fill_n(s.p, rows * key_tile, Sum{0});
        std::fill_n(s.ds, rows * key_tile, Sum{0});
        multiply_add<Sum>({s.q, s.pitch, 1}, {s.k_columns, key_tile}, call.width(), {s.p, key_tile},
                          rows, key_tile);
        multiply_add<Sum>({s.dout, s.value_pitch, 1}, {s.v_columns, key_tile}, call.value_width(),
                          {s.ds, key_tile}, rows, key_tile);
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::int64_t first = mask.first_key(i + r) - key;
          const std::int64_t end = mask.end_key(i + r) - key;
          Sum* const p = s.p + r * key_tile;
          Sum* const ds = s.ds + r * key_tile;
          if (call.rule.is_plain()) {
            weigh_row(p, ds, call.rule.scale, s.lse[row + r], s.row_sum[row + r], first, end);
            continue;
          }
          Sum slopes[key_tile];
          const auto [from, to] = std::pair(std::clamp<std::int64_t>(first, 0, key_tile),
                                            std::clamp<std::int64_t>(end, 0, key_tile));
          for (std::int64_t j = from; j < to; ++j) {
            slopes[j] = call.rule.slope_at(p[j]);
            p[j] = call.rule(p[j], range.b, h, i + r, key + j, mask.diagonal(i + r));
          }
          weigh_row(p, ds, Sum{1}, s.lse[row + r], s.row_sum[row + r], first, end);
          for (std::int64_t j = from; j < to; ++j) ds[j] *= call.rule.scale * slopes[j];
        }
        multiply_add<Sum>({s.p, 1, key_tile}, {s.dout, s.value_pitch}, rows, {s.dv, s.value_pitch},
                          present, s.value_pitch);
        multiply_add<Sum>({s.ds, 1, key_tile}, {s.q, s.pitch}, rows, {s.dk, s.pitch}, present,
                          s.pitch);
        multiply_add<Sum>({s.ds, key_tile, 1}, {s.k, s.pitch}, present,
                          {dq + row * s.pitch, s.pitch}, rows, s.pitch);
      }
    }
    store_rows(RowMatrix<Sum>{s.dk, s.pitch}, keys, dk, key);
    store_rows(RowMatrix<Sum>{s.dv, s.value_pitch}, keys, dv, key);
  }
  if (range.partial_dq != nullptr) return;
  for (std::int64_t head = 0; head < call.group; ++head) {
    store_rows(RowMatrix<Sum>{dq + head * call.queries() * s.pitch, s.pitch}, mask.queries,
               call.of_queries(call.dq, range.b).at(range.g * call.group + head), 0);
  }
}

}  // namespace

Differentiate* differentiate_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return differentiate<double>;
    case DType::f16:
      return differentiate<f16>;
    case DType::bf16:
      return differentiate<bf16>;
    default:
      return differentiate<float>;
  }
}

std::int64_t pitch_of(std::int64_t width, bool is_double) {
  return round_up(width, is_double ? lanes<double> : lanes<float>);
}

std::int64_t scratch_of(std::int64_t width, std::int64_t value_width, std::int64_t rows,
                        bool is_double) {
  if (is_double) return 8 * GradientScratch<double>(width, value_width, rows, nullptr).elements;
  return 4 * GradientScratch<float>(width, value_width, rows, nullptr).elements;
}

}  // namespace rung::attention_backward_cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace rung {
namespace attention_backward_cpu {
HWY_EXPORT(differentiate_of);
HWY_EXPORT(pitch_of);
HWY_EXPORT(scratch_of);
Differentiate* differentiate_for(DType dtype) {
  return HWY_DYNAMIC_DISPATCH(differentiate_of)(dtype);
}
std::int64_t sum_pitch(const AttentionBackward::Args& args) {
  return HWY_DYNAMIC_DISPATCH(pitch_of)(args.width(), args.q.dtype == DType::f64);
}
std::int64_t scratch_bytes(const AttentionBackward::Args& args) {
  return HWY_DYNAMIC_DISPATCH(scratch_of)(args.width(), args.value_width(), rows_of_group(args),
                                          args.q.dtype == DType::f64);
}
}  // namespace attention_backward_cpu

namespace {
using namespace attention_backward_cpu;

void run(const AttentionBackward::Args& args, Context& context) {
  void* const scratch = context.workspace(static_cast<std::size_t>(scratch_bytes(args)));
  Differentiate* const differentiate = differentiate_for(args.q.dtype);
  for (std::int64_t b = 0; b < args.batch(); ++b) {
    for (std::int64_t g = 0; g < args.kv_heads(); ++g) {
      differentiate(args, {.b = b, .g = g, .first_key = 0, .last_key = args.keys()}, scratch);
    }
  }
  if (!args.has_sink_gradient()) return;
  with_gradients(args, [&](const auto& p) {
    for (std::int64_t h = 0; h < p.heads(); ++h) write_sink_gradient(p, h);
  });
}

// Not a candidate: `threads` with one thread runs the same code.
const Rung<AttentionBackward> self{
    {.name = "simd", .step = 20, .after = "naive", .teaching = true, .run = run}};

}  // namespace
}  // namespace rung
#endif
