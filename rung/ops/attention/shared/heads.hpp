// SPDX-License-Identifier: Apache-2.0
// AttentionHeads: attention's operands with typed views, where the rows of a batch element lie, its
// mask and the rule of its scores; a kernel argument. The rungs share it, on hosts and devices.
#pragma once

#include <cstdint>
#include <limits>
#include <type_traits>

#include "rung/core/bounds.hpp"
#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/attention/op/attention.hpp"
#include "rung/ops/attention/shared/mask.hpp"
#include "rung/ops/attention/shared/packed_rows.hpp"
#include "rung/ops/attention/shared/score_rule.hpp"

namespace rung {

/// q and o are batch x heads x queries x width, k and v batch x kv_heads x keys x width; v and o
/// have value_width instead of width. With offsets, q and o (or k and v) hold the rows of all batch
/// elements one after another, at index 0 of the first axis; with a page table, the first axis of k
/// and v are pages. K, the type of k and v, is T or e4m3, with the scales below.
template <class T, class K = T>
struct AttentionHeads {
  using Element = T;
  using KeyElement = K;
  using Sum = Accumulator<T>;
  static constexpr bool has_scaled_keys = !std::is_same_v<T, K>;

  View<const T, 4> q;
  View<const K, 4> k, v;
  View<T, 4> o;
  View<Sum, 3> lse;                           // no data: not requested
  View<const std::int32_t, 1> key_lengths;    // no data: all keys exist
  View<const std::int32_t, 1> query_offsets;  // no data: q has a batch axis
  View<const std::int32_t, 1> key_offsets;    // no data: k and v have a batch axis, or pages
  View<const std::int32_t, 2> page_table;     // no data: no pages
  View<const Sum, 1> sinks;                   // no data: none
  View<const Sum, 2> k_scales, v_scales;      // batch x kv_heads, of e4m3 keys; no data: 1
  ScoreRule<Sum> rule;                        // without k_scales: see rule_of()
  bool causal;
  std::int64_t window;      // 0: none
  std::int64_t batch_size;  // batch elements
  std::int64_t key_count;   // keys of a batch element; an upper bound if they differ
  int group;                // heads of q per head of k and v

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t batch() const { return batch_size; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t heads() const { return q.shape[1]; }
  /// Returns the number of queries of a batch element; an upper bound if they differ.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t queries() const { return q.shape[2]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t width() const { return q.shape[3]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t kv_heads() const { return k.shape[1]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t keys() const { return key_count; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t value_width() const { return v.shape[3]; }

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE RowRange query_rows(std::int64_t b) const {
    return packed_rows(query_offsets, b, q.shape[2]);
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE RowRange key_rows(std::int64_t b) const {
    if (key_offsets.data != nullptr) return packed_rows(key_offsets, b, k.shape[2]);
    return {0, key_lengths.data != nullptr ? key_length(key_lengths(b), keys()) : keys()};
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE KeyMask<std::int64_t> mask(std::int64_t b) const {
    return {query_rows(b).count, key_rows(b).count, causal, window};
  }

  /// Returns the rows of a batch element, heads x rows x columns: its queries or their results.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<const T, 3> q_of(std::int64_t b) const {
    return element_of(q, query_offsets, b);
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<T, 3> o_of(std::int64_t b) const {
    return element_of(o, query_offsets, b);
  }
  /// Returns the keys or values of a batch element, heads x rows x columns; not with a page table.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<const K, 3> k_of(std::int64_t b) const {
    return element_of(k, key_offsets, b);
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<const K, 3> v_of(std::int64_t b) const {
    return element_of(v, key_offsets, b);
  }
  /// Returns key j, or its value, of a batch element and head, wherever it is stored.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<const K, 1> key(std::int64_t b, std::int64_t g,
                                                                std::int64_t j) const {
    return row_of(k, b, g, j);
  }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<const K, 1> value(std::int64_t b, std::int64_t g,
                                                                  std::int64_t j) const {
    return row_of(v, b, g, j);
  }

  /// Returns the rule of a head of k, whose scale includes that of its keys. Kernels that keep the
  /// maximum of unscaled products need a factor above 0, also for keys that are all zeros.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE ScoreRule<Sum> rule_of(
      [[maybe_unused]] std::int64_t b, [[maybe_unused]] std::int64_t g) const {
    ScoreRule<Sum> own = rule;
    if constexpr (has_scaled_keys) {
      if (k_scales.data != nullptr) {
        own.scale = larger(rule.scale * k_scales(b, g), std::numeric_limits<Sum>::min());
      }
    }
    return own;
  }
  /// Returns the factor of the weighted values of a head of v.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Sum value_scale([[maybe_unused]] std::int64_t b,
                                                           [[maybe_unused]] std::int64_t g) const {
    if constexpr (has_scaled_keys) {
      if (v_scales.data != nullptr) return v_scales(b, g);
    }
    return 1;
  }

  RUNG_HD RUNG_ALWAYS_INLINE void write_lse(std::int64_t b, std::int64_t h, std::int64_t i,
                                            Sum value) const {
    if (lse.data == nullptr) return;
    if (query_offsets.data == nullptr) {
      lse(b, h, i) = value;
    } else {
      lse(0, h, query_rows(b).first + i) = value;
    }
  }

 private:
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<const K, 1> row_of(const View<const K, 4>& rows,
                                                                   std::int64_t b, std::int64_t g,
                                                                   std::int64_t j) const {
    if (page_table.data != nullptr) {
      const std::int64_t size = rows.shape[2];
      // An entry that names no page must not become an address.
      const std::int64_t page =
          clamped(std::int64_t{page_table(b, j / size)}, std::int64_t{0}, rows.shape[0] - 1);
      return rows.at(page).at(g).at(j % size);
    }
    if (key_offsets.data != nullptr) return rows.at(0).at(g).at(key_rows(b).first + j);
    return rows.at(b).at(g).at(j);
  }
};

// --- on the host ---------------------------------------------------------------------------------

/// Returns whether the arguments are those that every rung knows: q, k and v of one type with a
/// batch axis, and scores that are scaled products.
inline Support require_basic(const Attention::Args& args) {
  if (args.has_e4m3_keys()) return unsupported("k and v are e4m3");
  if (args.is_packed()) return unsupported("query_offsets or key_offsets are given");
  if (args.has_pages()) return unsupported("page_table is given");
  if (!args.has_plain_scores()) return unsupported("soft_cap, slopes or bias are given");
  return args.has_sinks() ? unsupported("sinks are given") : supported;
}

/// Calls f.template operator()<T, K>() with the element types of q and o, and of k and v.
template <class F>
void visit_types(const Attention::Args& args, F&& f) {
  if (args.has_e4m3_keys()) {
    visit<float, f16, bf16>(args.q.dtype, [&]<class T>() { f.template operator()<T, e4m3>(); });
  } else {
    visit<float, double, f16, bf16>(args.q.dtype,
                                    [&]<class T>() { f.template operator()<T, T>(); });
  }
}

template <class T, class K = T>
AttentionHeads<T, K> attention_heads(const Attention::Args& args) {
  using Sum = Accumulator<T>;
  const AttentionOptions& options = args.options;
  AttentionHeads<T, K> heads{.q = args.q.view<const T, 4>(),
                             .k = args.k.view<const K, 4>(),
                             .v = args.v.view<const K, 4>(),
                             .o = args.o.view<T, 4>(),
                             .lse = {},
                             .key_lengths = numbers_of(options.key_lengths),
                             .query_offsets = numbers_of(options.query_offsets),
                             .key_offsets = numbers_of(options.key_offsets),
                             .page_table = {},
                             .sinks = {},
                             .k_scales = {},
                             .v_scales = {},
                             .rule = score_rule<Sum>(options),
                             .causal = options.causal,
                             .window = options.window,
                             .batch_size = args.batch(),
                             .key_count = args.keys(),
                             .group = static_cast<int>(args.group())};
  if (args.has_lse()) heads.lse = options.lse.view<Sum, 3>();
  if (args.has_pages()) heads.page_table = options.page_table.view<const std::int32_t, 2>();
  if (args.has_sinks()) heads.sinks = options.sinks.view<const Sum, 1>();
  if constexpr (AttentionHeads<T, K>::has_scaled_keys) {
    if (options.k_scales.data != nullptr) heads.k_scales = options.k_scales.view<const Sum, 2>();
    if (options.v_scales.data != nullptr) heads.v_scales = options.v_scales.view<const Sum, 2>();
  }
  return heads;
}

}  // namespace rung
