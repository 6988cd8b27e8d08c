// SPDX-License-Identifier: Apache-2.0
// AttentionGradients: attention_backward's operands with typed views, where the rows of a batch
// element lie, its mask and the rule of its scores; a kernel argument. The rungs share it, on hosts
// and devices.
#pragma once

#include <cstdint>

#include "rung/core/dtype.hpp"
#include "rung/core/view.hpp"
#include "rung/ops/attention/shared/mask.hpp"
#include "rung/ops/attention/shared/packed_rows.hpp"
#include "rung/ops/attention/shared/score_rule.hpp"
#include "rung/ops/attention_backward/op/attention_backward.hpp"

namespace rung {

/// q, o, dout and dq are batch x heads x queries x columns, k, v, dk and dv batch x kv_heads x keys
/// x columns. With offsets, the rows of all batch elements follow each other, at index 0 of the
/// first axis.
template <class T>
struct AttentionGradients {
  using Element = T;
  using Sum = Accumulator<T>;

  View<const T, 4> q, k, v, o, dout;
  View<const Sum, 3> lse;
  View<T, 4> dq, dk, dv;
  View<Sum, 1> dsinks;                        // no data: not requested
  View<const std::int32_t, 1> key_lengths;    // no data: all keys exist
  View<const std::int32_t, 1> query_offsets;  // no data: q has a batch axis
  View<const std::int32_t, 1> key_offsets;    // no data: k and v have a batch axis
  View<const Sum, 1> sinks;                   // no data: none
  ScoreRule<Sum> rule;
  bool causal;
  std::int64_t window;      // 0: none
  std::int64_t batch_size;  // batch elements
  int group;                // heads of q per head of k and v

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t batch() const { return batch_size; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t heads() const { return q.shape[1]; }
  /// Returns the number of queries of a batch element, keys() that of keys; upper bounds if they
  /// differ.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t queries() const { return q.shape[2]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t width() const { return q.shape[3]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t kv_heads() const { return k.shape[1]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t keys() const { return k.shape[2]; }
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE std::int64_t value_width() const { return v.shape[3]; }

  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE RowRange query_rows(std::int64_t b) const {
    return packed_rows(query_offsets, b, queries());
  }
  /// Returns the rows that dk and dv have for a batch element: those that key_lengths hides, too.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE RowRange key_rows(std::int64_t b) const {
    return packed_rows(key_offsets, b, keys());
  }
  template <class Index = std::int64_t>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE KeyMask<Index> mask(std::int64_t b) const {
    const std::int64_t rows = key_rows(b).count;
    const std::int64_t length =
        key_lengths.data != nullptr ? key_length(key_lengths(b), rows) : rows;
    return {static_cast<Index>(query_rows(b).count), static_cast<Index>(length), causal,
            static_cast<Index>(window)};
  }

  /// Returns the rows of a batch element, heads x rows x columns, of a tensor with a row per query,
  /// or per key.
  template <class U>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<U, 3> of_queries(const View<U, 4>& tensor,
                                                                 std::int64_t b) const {
    return element_of(tensor, query_offsets, b);
  }
  template <class U>
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE View<U, 3> of_keys(const View<U, 4>& tensor,
                                                              std::int64_t b) const {
    return element_of(tensor, key_offsets, b);
  }
  /// Returns lse of query i of head h of a batch element.
  [[nodiscard]] RUNG_HD RUNG_ALWAYS_INLINE Sum lse_of(std::int64_t b, std::int64_t h,
                                                      std::int64_t i) const {
    if (query_offsets.data == nullptr) return lse(b, h, i);
    return lse(0, h, query_rows(b).first + i);
  }
};

// --- on the host ---------------------------------------------------------------------------------

template <class T>
AttentionGradients<T> attention_gradients(const AttentionBackward::Args& args) {
  using Sum = Accumulator<T>;
  const AttentionBackwardOptions& options = args.options;
  AttentionGradients<T> gradients{.q = args.q.view<const T, 4>(),
                                  .k = args.k.view<const T, 4>(),
                                  .v = args.v.view<const T, 4>(),
                                  .o = args.o.view<const T, 4>(),
                                  .dout = args.dout.view<const T, 4>(),
                                  .lse = args.lse.view<const Sum, 3>(),
                                  .dq = args.dq.view<T, 4>(),
                                  .dk = args.dk.view<T, 4>(),
                                  .dv = args.dv.view<T, 4>(),
                                  .dsinks = {},
                                  .key_lengths = numbers_of(options.key_lengths),
                                  .query_offsets = numbers_of(options.query_offsets),
                                  .key_offsets = numbers_of(options.key_offsets),
                                  .sinks = {},
                                  .rule = score_rule<Sum>(options),
                                  .causal = options.causal,
                                  .window = options.window,
                                  .batch_size = args.batch(),
                                  .group = static_cast<int>(args.group())};
  if (args.has_sink_gradient()) {
    gradients.sinks = options.sinks.view<const Sum, 1>();
    gradients.dsinks = options.dsinks.view<Sum, 1>();
  }
  return gradients;
}

}  // namespace rung
