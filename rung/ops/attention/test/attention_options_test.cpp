// SPDX-License-Identifier: Apache-2.0
// Properties of attention's options: packed rows, pages, slopes, bias, soft caps and sinks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rung/ops/attention/op/attention.hpp"
#include "tests/support/operators.hpp"

namespace rung {
namespace {

using namespace test;

class AttentionOptionsOn : public OnBackend {};

template <class T>
std::vector<T> random_elements(std::int64_t count, unsigned seed) {
  std::vector<T> elements;
  for (const float value : random_values(count, seed)) elements.push_back(T(value));
  return elements;
}

template <class T>
double as_double(T value) {
  return static_cast<double>(static_cast<Accumulator<T>>(value));
}

/// A call whose operands have memory of their own: 2 heads of q share one of k and v.
template <class T>
struct OptionsCall {
  using Sum = Accumulator<T>;
  Extents q_shape, k_shape;
  std::vector<T> q, k, v, o;
  std::vector<Sum> lse;
  Attention::Call call;

  OptionsCall(const Extents& q_shape, const Extents& k_shape)
      : q_shape(q_shape),
        k_shape(k_shape),
        q(random_elements<T>(q_shape.product(), 1)),
        k(random_elements<T>(k_shape.product(), 2)),
        v(random_elements<T>(k_shape.product(), 3)),
        o(q.size()),
        lse(q.size() / static_cast<std::size_t>(q_shape[3])) {
    call = {.q = tensor(q, q_shape),
            .k = tensor(k, k_shape),
            .v = tensor(v, k_shape),
            .o = tensor(o, q_shape),
            .options = {.lse = tensor(lse, {q_shape[0], q_shape[1], q_shape[2]})}};
  }
  OptionsCall(std::int64_t queries, std::int64_t keys)
      : OptionsCall({2, 4, queries, 64}, {2, 2, keys, 64}) {}
  OptionsCall(const OptionsCall&) = delete;
  OptionsCall& operator=(const OptionsCall&) = delete;

  /// Returns o, then lse.
  std::vector<double> run(Context& context, std::string_view pick,
                          const AttentionOptions& options) {
    std::fill(o.begin(), o.end(), T(nan));
    std::fill(lse.begin(), lse.end(), Sum(nan));
    AttentionOptions with_lse = options;
    with_lse.lse = call.options.lse;
    attention(context, call.q, call.k, call.v, call.o, with_lse, {pick});
    std::vector<double> results;
    results.reserve(o.size() + lse.size());
    for (const T value : o) results.push_back(as_double(value));
    for (const Sum value : lse) results.push_back(static_cast<double>(value));
    return results;
  }
  /// Returns the results of the plainest rung on the CPU.
  std::vector<double> reference(const AttentionOptions& options) {
    Context cpu = Context::cpu(1);
    return run(cpu, "materialized", options);
  }
  /// Returns the rungs that support a call with the options: none on a simulated GPU for some. ""
  /// is the public call.
  std::vector<std::string_view> picks(Context& context, const AttentionOptions& options) {
    Attention::Call with = call;
    with.options = options;
    const Attention::Args args = bind<Attention>(with);
    std::vector<std::string_view> names;
    bool has_public_call = false;
    for (auto* rung = Attention::rungs().first; rung != nullptr; rung = rung->next) {
      const RungInfo& info = rung->info;
      if (info.backend != context.backend() || info.peer || !rung->supports(args, context))
        continue;
      names.push_back(info.name);
      has_public_call = has_public_call || !info.teaching;
    }
    if (has_public_call) names.insert(names.begin(), "");
    return names;
  }
};

/// Expects equal results up to some roundoffs of the type and `also`; the same infinities.
template <class T>
void expect_close(const std::vector<double>& got, const std::vector<double>& expected,
                  std::string_view pick, double also = 0) {
  const double allowed = 32 * epsilon(dtype_of<T>) + also;
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t at = 0; at < got.size(); ++at) {
    if (got[at] == expected[at]) continue;
    ASSERT_NEAR(got[at], expected[at], allowed * (1 + std::abs(expected[at]))) << pick << ' ' << at;
  }
}

template <class T>
std::vector<Accumulator<T>> per_head(std::initializer_list<double> values) {
  std::vector<Accumulator<T>> numbers;
  for (const double value : values) numbers.push_back(static_cast<Accumulator<T>>(value));
  return numbers;
}

/// Makes a bias for a call from a function of head, query, key and the query's diagonal.
template <class T>
std::vector<Accumulator<T>> bias_of(
    const OptionsCall<T>& call,
    const std::function<double(std::size_t h, std::int64_t behind)>& value) {
  std::vector<Accumulator<T>> bias;
  const std::int64_t queries = call.q_shape[2];
  const std::int64_t keys = call.k_shape[2];
  for (std::int64_t h = 0; h < call.q_shape[0] * call.q_shape[1]; ++h) {
    for (std::int64_t i = 0; i < queries; ++i) {
      for (std::int64_t j = 0; j < keys; ++j) {
        const double at =
            value(static_cast<std::size_t>(h % call.q_shape[1]), i + keys - queries - j);
        bias.push_back(static_cast<Accumulator<T>>(at));
      }
    }
  }
  return bias;
}
template <class T>
ConstTensorRef bias_tensor(const OptionsCall<T>& call, std::vector<Accumulator<T>>& bias) {
  return tensor(bias, {call.q_shape[0], call.q_shape[1], call.q_shape[2], call.k_shape[2]});
}

/// Calls a generic function for a type of each kind of rung.
template <class F>
void for_types(F&& f) {
  f.template operator()<float>();
  f.template operator()<double>();
  f.template operator()<bf16>();
}

// Bit for bit on CPUs; elsewhere rungs may divide work differently.
template <class T>
void expect_packed_as_separate(Context& context, bool causal) {
  // Rows before the first offset, more than a tile, belong to no batch element.
  constexpr std::int64_t before = 200;
  std::vector<std::int32_t> query_offsets = {before, before + 5, before + 5, before + 75,
                                             before + 76};
  std::vector<std::int32_t> key_offsets = {0, 9, 12, 52, 182};
  OptionsCall<T> packed({1, 4, before + 77, 64}, {1, 2, 183, 64});
  auto slopes = per_head<T>({0.5, 0.25, 0.125, 0});
  auto sinks = per_head<T>({-1, 0, 1, 2});
  AttentionOptions options{.causal = causal,
                           .window = causal ? 50 : 0,
                           .soft_cap = 4,
                           .slopes = tensor(slopes, {4}),
                           .sinks = tensor(sinks, {4})};
  AttentionOptions with_offsets = options;
  with_offsets.query_offsets = tensor(query_offsets, {5});
  with_offsets.key_offsets = tensor(key_offsets, {5});
  for (const auto pick : packed.picks(context, with_offsets)) {
    const std::vector<double> results = packed.run(context, pick, with_offsets);
    std::vector<double> expected(results.size(), nan);
    // The public call may choose other rungs for smaller calls, and rungs of GPUs that take the
    // packed call may refuse the larger ones of these.
    const bool is_exact = context.backend() == Backend::cpu && !pick.empty();
    for (std::size_t b = 0; b < 4; ++b) {
      const std::int64_t first = query_offsets[b];
      const std::int64_t queries = query_offsets[b + 1] - first;
      const auto rows_of = [](const ConstTensorRef& all, std::int64_t from, std::int64_t count) {
        Extents shape = all.shape;
        shape[2] = count;
        return ConstTensorRef(static_cast<const T*>(all.data) + from * 64, shape, all.strides);
      };
      const std::int64_t keys = key_offsets[b + 1] - key_offsets[b];
      const ConstTensorRef q = rows_of(packed.call.q, first, queries);
      const ConstTensorRef k = rows_of(packed.call.k, key_offsets[b], keys);
      const ConstTensorRef v = rows_of(packed.call.v, key_offsets[b], keys);
      std::vector<T> o(static_cast<std::size_t>(q.shape.product()));
      std::vector<Accumulator<T>> lse(o.size() / 64);
      options.lse = tensor(lse, {1, 4, queries});
      attention(context, q, k, v, tensor(o, q.shape), options, {is_exact ? pick : ""});
      for (std::int64_t row = 0; row < 4 * queries; ++row) {
        const std::int64_t to = row / queries * (before + 77) + first + row % queries;
        for (std::int64_t c = 0; c < 64; ++c) {
          expected[static_cast<std::size_t>(to * 64 + c)] =
              as_double(o[static_cast<std::size_t>(row * 64 + c)]);
        }
        expected[packed.o.size() + static_cast<std::size_t>(to)] =
            static_cast<double>(lse[static_cast<std::size_t>(row)]);
      }
    }
    for (std::size_t at = 0; at < results.size(); ++at) {
      const bool absent = std::isnan(expected[at]);
      EXPECT_EQ(std::isnan(results[at]), absent) << pick << ' ' << at;
      const double allowed = is_exact ? 0 : 128 * epsilon(dtype_of<T>);
      if (absent) continue;
      ASSERT_NEAR(results[at], expected[at], allowed) << pick << ' ' << at;
    }
  }
}

TEST_P(AttentionOptionsOn, PackedRowsAreSeparateCalls) {
  for (const bool causal : {false, true}) {
    for_types([&]<class T>() { expect_packed_as_separate<T>(context, causal); });
  }
}

// The elements share their first page. Entries of pages without keys are out of range.
template <class T>
void expect_paged_as_plain(Context& context, std::int64_t size) {
  constexpr std::int64_t per_element = 6;
  const std::int64_t keys = per_element * size;
  std::vector<std::int32_t> lengths = {static_cast<std::int32_t>(keys),
                                       static_cast<std::int32_t>(2 * size + 1)};
  std::vector<std::int32_t> pages = {7, 2, 9, 0, 4, 8, 7, 5, 3, -1, 1 << 30, 10};
  OptionsCall<T> plain(19, keys);
  OptionsCall<T> paged({2, 4, 19, 64}, {10, 2, size, 64});
  for (std::int64_t at = 0; at < plain.k_shape.product(); ++at) {
    const std::int64_t b = at / 64 / keys / 2;
    const std::int64_t g = at / 64 / keys % 2;
    const std::int64_t j = at / 64 % keys;
    if (j >= lengths[static_cast<std::size_t>(b)]) continue;
    const std::int64_t page = pages[static_cast<std::size_t>(b * per_element + j / size)];
    const auto from = static_cast<std::size_t>(((page * 2 + g) * size + j % size) * 64 + at % 64);
    plain.k[static_cast<std::size_t>(at)] = paged.k[from];
    plain.v[static_cast<std::size_t>(at)] = paged.v[from];
  }
  AttentionOptions options{.causal = true, .key_lengths = tensor(lengths, {2})};
  AttentionOptions with_pages = options;
  with_pages.page_table = tensor(pages, {2, per_element});
  for (const auto pick : paged.picks(context, with_pages)) {
    const std::vector<double> expected = plain.run(context, pick, options);
    const std::vector<double> results = paged.run(context, pick, with_pages);
    if (context.backend() == Backend::cpu) {
      EXPECT_EQ(results, expected) << pick << ' ' << size;
    } else {
      expect_close<T>(results, expected, pick);
    }
  }
}

TEST_P(AttentionOptionsOn, PagesChangeNothing) {
  for (const std::int64_t size : {1, 7, 16}) {
    for_types([&]<class T>() { expect_paged_as_plain<T>(context, size); });
  }
}

// Packed prompts against paged caches, and prompts of equal size against packed keys: the mixtures
// that `rung check` has no problems for.
template <class T>
void expect_mixed_layouts(Context& context) {
  std::vector<std::int32_t> offsets = {0, 1, 30, 37};
  std::vector<std::int32_t> lengths = {40, 33, 5};
  std::vector<std::int32_t> pages = {3, 1, 4, 8, 0, 5, 2, 6, 7, 9};
  OptionsCall<T> paged({1, 4, 37, 64}, {10, 2, 16, 64});
  OptionsCall<T> keyed({3, 4, 5, 64}, {1, 2, 37, 64});
  const AttentionOptions with_pages{.causal = true,
                                    .key_lengths = tensor(lengths, {3}),
                                    .query_offsets = tensor(offsets, {4}),
                                    .page_table = tensor(pages, {3, 3})};
  for (const auto pick : paged.picks(context, with_pages)) {
    expect_close<T>(paged.run(context, pick, with_pages), paged.reference(with_pages), pick);
  }
  const AttentionOptions with_keys{.causal = true, .key_offsets = tensor(offsets, {4})};
  for (const auto pick : keyed.picks(context, with_keys)) {
    expect_close<T>(keyed.run(context, pick, with_keys), keyed.reference(with_keys), pick);
  }
}

TEST_P(AttentionOptionsOn, PackedQueriesGoWithPagesAndWithPackedKeys) {
  for_types([&]<class T>() { expect_mixed_layouts<T>(context); });
}

template <class T>
void expect_slopes_as_bias(Context& context, bool causal) {
  OptionsCall<T> call(21, 75);
  auto slopes = per_head<T>({0.5, 0.25, 0.125, 0.0625});
  auto bias = bias_of<T>(call, [&](std::size_t h, std::int64_t behind) {
    return -static_cast<double>(slopes[h]) * static_cast<double>(std::abs(behind));
  });
  const AttentionOptions sloped{.causal = causal, .soft_cap = 3, .slopes = tensor(slopes, {4})};
  const AttentionOptions biased{
      .causal = causal, .soft_cap = 3, .bias = bias_tensor<T>(call, bias)};
  for (const auto pick : call.picks(context, sloped)) {
    expect_close<T>(call.run(context, pick, sloped), call.reference(biased), pick);
  }
  for (const auto pick : call.picks(context, biased)) {
    expect_close<T>(call.run(context, pick, biased), call.reference(sloped), pick);
  }
}

TEST_P(AttentionOptionsOn, ABiasOfSlopesIsSlopes) {
  for (const bool causal : {false, true}) {
    for_types([&]<class T>() { expect_slopes_as_bias<T>(context, causal); });
  }
}

// Some queries see no key: their rows are 0.
template <class T>
void expect_masking_bias(Context& context) {
  OptionsCall<T> call(21, 17);
  auto bias = bias_of<T>(call, [](std::size_t, std::int64_t behind) {
    return behind < 0 ? -static_cast<double>(infinity) : 0.0;
  });
  const AttentionOptions biased{.bias = bias_tensor<T>(call, bias)};
  for (const auto pick : call.picks(context, biased)) {
    expect_close<T>(call.run(context, pick, biased), call.reference({.causal = true}), pick);
  }
}

TEST_P(AttentionOptionsOn, ABiasOfMinusInfinityIsAMask) {
  for_types([&]<class T>() { expect_masking_bias<T>(context); });
}

// The extra key has the score of the sink for each query of its head, and v of 0.
template <class T>
void expect_sink_as_key(Context& context, bool causal) {
  const Extents q_shape{1, 2, 13, 64};
  OptionsCall<T> call(q_shape, {1, 2, 40, 64});
  OptionsCall<T> extra(q_shape, {1, 2, 41, 64});
  auto sinks = per_head<T>({-0.5, 1.5});
  for (std::size_t at = 0; at < call.q.size(); at += 64) {
    call.q[at] = T(static_cast<float>(sinks[at / 64 / 13]));
  }
  extra.q = call.q;
  for (std::size_t row = 0; row < 82; ++row) {
    for (std::size_t c = 0; c < 64; ++c) {
      const bool sink = row % 41 == 0;  // the first key: causal queries see it, too
      const std::size_t from = (row / 41 * 40 + row % 41 - 1) * 64 + c;
      extra.k[row * 64 + c] = sink ? T(c == 0 ? 8.0F : 0.0F) : call.k[from];
      extra.v[row * 64 + c] = sink ? T(0.0F) : call.v[from];
    }
  }
  extra.call.q = tensor(extra.q, q_shape);
  const AttentionOptions options{.causal = causal, .sinks = tensor(sinks, {2})};
  for (const auto pick : call.picks(context, options)) {
    expect_close<T>(call.run(context, pick, options), extra.reference({.causal = causal}), pick);
  }
}

TEST_P(AttentionOptionsOn, ASinkIsAKeyWithoutAValue) {
  for (const bool causal : {false, true}) {
    for_types([&]<class T>() { expect_sink_as_key<T>(context, causal); });
  }
}

TEST_P(AttentionOptionsOn, SinksAloneAreTheDenominator) {
  OptionsCall<float> call(3, 0);
  auto sinks = per_head<float>({-3, 0, 2, -infinity});
  const AttentionOptions options{.sinks = tensor(sinks, {4})};
  for (const auto pick : call.picks(context, options)) {
    const std::vector<double> results = call.run(context, pick, options);
    for (std::size_t at = 0; at < call.o.size(); ++at) ASSERT_EQ(results[at], 0) << pick;
    for (std::size_t row = 0; row < call.lse.size(); ++row) {
      const float sink = sinks[row / 3 % 4];
      const float lse = call.lse[row];
      EXPECT_TRUE(lse == sink || std::abs(lse - sink) < 1e-6F) << pick << ' ' << lse;
    }
  }
}

// The accuracy of a capped score is that of the cap: 16 roundoffs of it.
template <class T>
void expect_caps(Context& context, double wide, double also) {
  OptionsCall<T> call(21, 75);
  const std::vector<double> without = call.reference({});
  auto zeros = per_head<T>({0, 0, 0, 0});
  auto no_sinks = per_head<T>({-infinity, -infinity, -infinity, -infinity});
  auto no_bias = bias_of<T>(call, [](std::size_t, std::int64_t) { return 0.0; });
  const AttentionOptions capped{.soft_cap = wide};
  for (const auto pick : call.picks(context, capped)) {
    expect_close<T>(call.run(context, pick, capped), without, pick, also);
    // With a cap near 0, all scores are equal: o is the mean of v.
    const std::vector<double> equal = call.run(context, pick, {.soft_cap = 1e-4});
    for (std::size_t row = 0; row < call.lse.size(); ++row) {
      double mean = 0;
      for (std::size_t j = 0; j < 75; ++j) mean += as_double(call.v[(row / 42 * 75 + j) * 64]) / 75;
      ASSERT_NEAR(equal[row * 64], mean, 2e-3) << pick << ' ' << row;
    }
  }
  for (const AttentionOptions& nothing : {AttentionOptions{.slopes = tensor(zeros, {4})},
                                          AttentionOptions{.bias = bias_tensor<T>(call, no_bias)},
                                          AttentionOptions{.sinks = tensor(no_sinks, {4})}}) {
    for (const auto pick : call.picks(context, nothing)) {
      expect_close<T>(call.run(context, pick, nothing), without, pick);
    }
  }
}

TEST_P(AttentionOptionsOn, WideCapsAndOptionsOfZeroChangeLittle) {
  expect_caps<float>(context, 1e3, 5e-3);
  expect_caps<double>(context, 1e6, 1e-8);
  expect_caps<bf16>(context, 1e2, 3e-2);
}

INSTANTIATE_TEST_SUITE_P(Backends, AttentionOptionsOn, backends, name_of_backend);

// One long element among many: the blocks of rows and the splits of the keys depend on the offsets.
TEST(AttentionOptionsCpu, PackedAndPagedBitsDependOnNoThread) {
  OptionsCall<float> packed({1, 4, 150, 64}, {1, 2, 4000, 64});
  std::vector<std::int32_t> query_offsets = {0, 1, 1, 130, 150};
  std::vector<std::int32_t> key_offsets = {0, 3000, 3001, 3500, 4000};
  OptionsCall<float> paged({1, 4, 3, 64}, {40, 2, 64, 64});
  std::vector<std::int32_t> pages(40);
  for (std::size_t page = 0; page < 40; ++page) {
    pages[page] = static_cast<std::int32_t>(page * 7 % 40);
  }
  auto sinks = per_head<float>({-1, 0, 1, 2});
  const AttentionOptions options[] = {
      {.causal = true,
       .query_offsets = tensor(query_offsets, {5}),
       .key_offsets = tensor(key_offsets, {5}),
       .sinks = tensor(sinks, {4})},
      {.soft_cap = 3, .page_table = tensor(pages, {1, 40}), .sinks = tensor(sinks, {4})}};
  for (int which = 0; which < 2; ++which) {
    OptionsCall<float>& call = which == 0 ? packed : paged;
    Context alone = Context::cpu(1);
    const std::vector<double> expected = call.run(alone, "online_tiled", options[which]);
    for (const std::string_view pick : {"simd", "threads", ""}) {
      const std::vector<double> one = call.run(alone, pick, options[which]);
      expect_close<float>(one, expected, pick);
      for (const int threads : {2, 3, 7, 16}) {
        Context context = Context::cpu(threads);
        EXPECT_EQ(call.run(context, pick, options[which]), one) << pick << ' ' << threads;
      }
    }
  }
}

TEST(AttentionOptions, WrongOptionsAreNamed) {
  Context context = Context::cpu();
  const auto says = [&](std::string_view part, const AttentionOptions& options,
                        std::int64_t batch = 2) {
    std::vector<float> x(2 * 4 * 3 * 8);
    std::vector<float> y(x.size());
    const Extents shape{batch, 4, 3, 8};
    expect_text(message_of([&] {
                  attention(context, tensor(x, shape), tensor(x, shape), tensor(x, shape),
                            tensor(y, shape), options);
                }),
                part);
  };
  std::vector<std::int32_t> n(16);
  std::vector<float> f(2 * 4 * 3 * 3);
  says("soft_cap is -1; accepted: 0, for none, or above 0", {.soft_cap = -1});
  says("soft_cap is inf", {.soft_cap = infinity});
  says("query_offsets has shape 1x3; accepted: B + 1 numbers", {.query_offsets = tensor(n, {1, 3})},
       1);
  says("query_offsets", {.query_offsets = tensor(f, {3})}, 1);  // of another type
  says("q has shape 2x4x3x8; accepted with query_offsets: 1 on the first axis",
       {.query_offsets = tensor(n, {3})});
  says("k has shape 2x4x3x8; accepted with key_offsets: 1 on the first axis",
       {.key_offsets = tensor(n, {3})});
  says("key_offsets has 4 numbers", {.key_offsets = tensor(n, {4})}, 1);
  says("key_lengths are given; accepted with key_offsets: none",
       {.key_lengths = tensor(n, {1}), .key_offsets = tensor(n, {2})}, 1);
  says("page_table is given; accepted with key_offsets: none",
       {.key_offsets = tensor(n, {2}), .page_table = tensor(n, {1, 2})}, 1);
  says("bias is given; accepted with query_offsets or key_offsets: none",
       {.query_offsets = tensor(n, {2}), .bias = tensor(f, {1, 4, 3, 3})}, 1);
  says("bias is given; accepted with query_offsets or key_offsets: none",
       {.key_offsets = tensor(n, {2}), .bias = tensor(f, {1, 4, 3, 3})}, 1);
  says("page_table has shape 3x2; accepted: 2 x P", {.page_table = tensor(n, {3, 2})});
  says("page_table", {.page_table = tensor(f, {2, 2})});
  says("slopes is 3", {.slopes = tensor(f, {3})});
  says("slopes", {.slopes = tensor(n, {4})});
  says("sinks is 2", {.sinks = tensor(f, {2})});
  says("sinks", {.sinks = tensor(n, {4})});
  says("bias is 2x4x3x2", {.bias = tensor(f, {2, 4, 3, 2})});
  says("bias is 2x4x3x3", {.page_table = tensor(n, {2, 2}), .bias = tensor(f, {2, 4, 3, 3})});
}

}  // namespace
}  // namespace rung
