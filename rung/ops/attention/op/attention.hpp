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
#include "rung/ops/attention/shared/sizes.hpp"

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
      "         element, one after another), packed=queries and packed=keys (only of these),\n"
      "         page=N (k and v in scattered pages of N keys), bshd (q, k and v are in memory as\n"
      "         BxSxHxD), e4m3 (the type of k and v), scaled (with e4m3: a factor per batch\n"
      "         element and head of k and of v), special (values: NaN and infinities, in keys\n"
      "         that are not seen too), masked (values: scores of -infinity, of some or all keys\n"
      "         of a query, with NaN and infinities in v)";

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
  struct Args : AttentionSizes<Call> {
    /// Returns the maximum number of queries in `rows` adjacent rows; row r of a head of k is query
    /// r / group() of one of its heads of q.
    [[nodiscard]] std::int64_t queries_of(std::int64_t rows) const;
    [[nodiscard]] bool has_sinks() const { return options.sinks.data != nullptr; }
    [[nodiscard]] bool has_e4m3_keys() const { return k.dtype == DType::e4m3; }
    [[nodiscard]] bool has_lse() const { return options.lse.data != nullptr; }
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
