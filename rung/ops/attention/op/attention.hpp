// SPDX-License-Identifier: Apache-2.0
// attention's arguments as the rungs see them, and its interface to the workbench. The contract is
// in rung/ops/attention/attention.hpp.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rung/core/export.hpp"
#include "rung/core/operator.hpp"
#include "rung/core/tensor_ref.hpp"
#include "rung/ops/attention/attention.hpp"

namespace rung {

struct RUNG_API Attention {
  static constexpr std::string_view name = "attention";
  static constexpr std::string_view summary = "o = softmax(scale q k^T) v, for every head";
  static constexpr std::string_view problem_help =
      "TYPE BxHxSxD[,options]: bf16 4x32x2048x128,causal   f16 8x32x1x128,kv=8,keys=4096\n"
      "options: kv=N (heads of k and v; default H), keys=N (default S), dv=N (width of v and o;\n"
      "         default D), scale=X (default 1/sqrt(D)), causal, window=N (with causal: keys per\n"
      "         query; default all), cap=X (soft cap of the scores), slopes (of ALiBi), bias, "
      "sinks\n"
      "         (tensors that are given, too), lse (written too), lengths (other numbers of keys "
      "for\n"
      "         each batch element), packed (other numbers of queries and keys for each batch\n"
      "         element, one after another), page=N (k and v in scattered pages of N keys), bshd "
      "(q,\n"
      "         k and v are in memory as BxSxHxD), e4m3 (the type of k and v), scaled (with e4m3: "
      "a\n"
      "         factor per batch element and head of k and of v), special (values: NaN and\n"
      "         infinities, in keys that are not seen too), masked (values: scores of -infinity, "
      "of\n"
      "         some or all keys of a query, with NaN and infinities in v)";

  struct Call {
    ConstTensorRef q = {};
    ConstTensorRef k = {};
    ConstTensorRef v = {};
    TensorRef o = {};
    AttentionOptions options = {};
    bool operator==(const Call&) const = default;
  };

  /// Checked arguments. options.scale is the factor of the scores, never 0; options.window is
  /// below the number of keys, 0 if it hides none.
  struct Args : Call {
    [[nodiscard]] std::int64_t batch() const {
      return has_query_offsets() ? options.query_offsets.shape[0] - 1 : q.shape[0];
    }
    [[nodiscard]] std::int64_t heads() const { return q.shape[1]; }
    /// Returns the number of queries of a batch element; of all of them if they are packed.
    [[nodiscard]] std::int64_t queries() const { return q.shape[2]; }
    [[nodiscard]] std::int64_t width() const { return q.shape[3]; }  // D
    [[nodiscard]] std::int64_t kv_heads() const { return k.shape[1]; }
    /// Returns the number of keys of a batch element, key_lengths ignored; of all if packed.
    [[nodiscard]] std::int64_t keys() const {
      if (!has_pages()) return k.shape[2];
      return k.shape[0] == 0 ? 0 : options.page_table.shape[1] * k.shape[2];
    }
    [[nodiscard]] std::int64_t value_width() const { return v.shape[3]; }  // Dv
    /// Returns the number of heads of q per head of k and v; 0 if q has no heads.
    [[nodiscard]] std::int64_t group() const { return heads() == 0 ? 0 : heads() / kv_heads(); }
    /// Returns the maximum number of queries in `rows` adjacent rows; row r of a head of k is query
    /// r / group() of one of its heads of q.
    [[nodiscard]] std::int64_t queries_of(std::int64_t rows) const;
    [[nodiscard]] bool has_lengths() const { return options.key_lengths.data != nullptr; }
    [[nodiscard]] bool has_query_offsets() const { return options.query_offsets.data != nullptr; }
    [[nodiscard]] bool has_key_offsets() const { return options.key_offsets.data != nullptr; }
    [[nodiscard]] bool is_packed() const { return has_query_offsets() || has_key_offsets(); }
    [[nodiscard]] bool has_pages() const { return options.page_table.rank() != 0; }
    [[nodiscard]] bool has_sinks() const { return options.sinks.data != nullptr; }
    [[nodiscard]] bool has_e4m3_keys() const { return k.dtype == DType::e4m3; }
    [[nodiscard]] bool has_lse() const { return options.lse.data != nullptr; }
    /// Returns whether a score is scale times the product of a query and a key, and nothing else.
    [[nodiscard]] bool has_plain_scores() const {
      return options.soft_cap == 0 && options.slopes.data == nullptr &&
             options.bias.data == nullptr;
    }
    /// Returns the mean number of queries per batch element; typical_keys() that of keys,
    /// key_lengths ignored.
    [[nodiscard]] std::int64_t typical_queries() const;
    [[nodiscard]] std::int64_t typical_keys() const;
    /// Returns the number of visible (query, key) pairs of one head of a batch element of typical
    /// size, key_lengths ignored.
    [[nodiscard]] double visible_pairs() const;
    /// Returns the maximum number of keys that `adjacent` adjacent queries see together.
    [[nodiscard]] std::int64_t most_keys(std::int64_t adjacent) const;
  };

  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.q, "q"), in(call.k, "k"), in(call.v, "v"),
          optional_in(call.options.key_lengths, "key_lengths"),
          optional_in(call.options.query_offsets, "query_offsets"),
          optional_in(call.options.key_offsets, "key_offsets"),
          optional_in(call.options.page_table, "page_table"),
          optional_in(call.options.slopes, "slopes"), optional_in(call.options.bias, "bias"),
          optional_in(call.options.sinks, "sinks"), optional_in(call.options.k_scales, "k_scales"),
          optional_in(call.options.v_scales, "v_scales"), out(call.o, "o"),
          optional_out(call.options.lse, "lse"));
  }
  static RungList<Attention>& rungs();
  static void bind(Args& args);

  /// Counts all keys: key_lengths are in device memory.
  static Cost cost(const Args& args);
  /// Stores error bounds of the contract as magnitudes; tolerance() scales them by about 1.
  static void reference(const Args& args, Oracle& oracle);
  static Tolerance tolerance(const Args& args, const RungInfo& rung, Values values);
  static std::vector<Problem> check_problems(Backend backend);
  static std::vector<Problem> bench_problems(Backend backend);
  static Call make(const Problem& problem, Inputs& inputs);
  static Problem describe(const Call& call);
  static std::span<const ArgumentSpec> arguments();
  static void invoke(Context& context, Invocation& invocation, Pick pick);
};

}  // namespace rung
