// SPDX-License-Identifier: Apache-2.0
// AttentionSizes: sizes of a call of attention or its gradient, and which of its options are given.
#pragma once

#include <cstdint>

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/ops/attention/shared/mask.hpp"

namespace rung {

/// Base of an operator's Args: a Call with q, k, v and the options that both operators have; of
/// attention itself also a page table.
template <class Call>
struct AttentionSizes : Call {
  [[nodiscard]] std::int64_t batch() const {
    return has_query_offsets() ? this->options.query_offsets.shape[0] - 1 : this->q.shape[0];
  }
  [[nodiscard]] std::int64_t heads() const { return this->q.shape[1]; }
  /// Returns the number of queries of a batch element, keys() that of keys, key_lengths ignored; of
  /// all of them if they are packed.
  [[nodiscard]] std::int64_t queries() const { return this->q.shape[2]; }
  [[nodiscard]] std::int64_t keys() const {
    const std::int64_t rows = this->k.shape[2];
    if constexpr (may_have_pages) {
      if (has_pages()) return this->k.shape[0] == 0 ? 0 : this->options.page_table.shape[1] * rows;
    }
    return rows;
  }
  [[nodiscard]] std::int64_t width() const { return this->q.shape[3]; }  // D
  [[nodiscard]] std::int64_t kv_heads() const { return this->k.shape[1]; }
  [[nodiscard]] std::int64_t value_width() const { return this->v.shape[3]; }  // Dv
  /// Returns the number of heads of q per head of k and v; 0 if k has no heads.
  [[nodiscard]] std::int64_t group() const { return kv_heads() == 0 ? 0 : heads() / kv_heads(); }
  [[nodiscard]] bool has_lengths() const { return this->options.key_lengths.data != nullptr; }
  [[nodiscard]] bool has_query_offsets() const {
    return this->options.query_offsets.data != nullptr;
  }
  [[nodiscard]] bool has_pages() const {
    if constexpr (may_have_pages) {
      return this->options.page_table.rank() != 0;
    } else {
      return false;
    }
  }
  [[nodiscard]] bool has_key_offsets() const { return this->options.key_offsets.data != nullptr; }
  [[nodiscard]] bool is_packed() const { return has_query_offsets() || has_key_offsets(); }
  /// Returns whether a score is scale times the product of a query and a key, and nothing else.
  [[nodiscard]] bool has_plain_scores() const {
    return this->options.soft_cap == 0 && this->options.slopes.data == nullptr &&
           this->options.bias.data == nullptr;
  }

  /// Returns the mean number of queries per batch element; typical_keys() that of keys, key_lengths
  /// ignored.
  [[nodiscard]] std::int64_t typical_queries() const {
    return has_query_offsets() ? ceil_div(queries(), larger(batch(), std::int64_t{1})) : queries();
  }
  [[nodiscard]] std::int64_t typical_keys() const {
    return has_key_offsets() ? ceil_div(keys(), larger(batch(), std::int64_t{1})) : keys();
  }
  /// Returns the number of visible (query, key) pairs of one head of a batch element of typical
  /// size, key_lengths ignored.
  [[nodiscard]] double visible_pairs() const {
    return count_visible_pairs(typical_queries(), typical_keys(), this->options.causal,
                               this->options.window);
  }
  /// Returns the maximum number of keys that `adjacent` adjacent queries see together.
  [[nodiscard]] std::int64_t most_keys(std::int64_t adjacent) const {
    return most_visible_keys(adjacent, keys(), this->options.window);
  }

 private:
  static constexpr bool may_have_pages = requires(const Call& call) { call.options.page_table; };
};

}  // namespace rung
