// SPDX-License-Identifier: Apache-2.0
// Properties of transfer that `rung check` does not cover: chunks in place, varying sizes on one
// context, errors. On the simulated GPU.
#include "rung/ops/transfer/op/transfer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rung {
namespace {

/// Returns values whose signs alternate with a period that divides no chunk size.
std::vector<float> signs(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = (i % 7 < 3 ? -1.0F : 1.0F) * static_cast<float>(i % 1021);
  }
  return values;
}

TensorRef vector_of(std::vector<float>& values) {
  return {values.data(), DType::f32, Extents{static_cast<std::int64_t>(values.size())}};
}

TEST(Transfer, EveryRungApartAndInPlaceWhateverCameBefore) {
  Context context = Context::simt();
  // Larger, smaller, larger again: reused buffers must not keep old results. The first size is
  // slightly more than two chunks of 4 MiB.
  for (const std::size_t count : {std::size_t{2'200'003}, std::size_t{5}, std::size_t{1'048'577}}) {
    for (const std::string_view rung : {"pageable_copy", "pinned_copy", "chunked_streams"}) {
      std::vector<float> x = signs(count);
      const std::vector<float> before = x;
      std::vector<float> y(count, 7.0F);
      transfer(context, vector_of(x), vector_of(y), {}, Pick{rung});
      transfer(context, vector_of(x), vector_of(x), {}, Pick{rung});
      for (std::size_t i = 0; i < count; ++i) {
        const float expected = before[i] < 0 ? 0.0F : before[i];
        ASSERT_EQ(y[i], expected) << rung << " at " << i << " of " << count;
        ASSERT_EQ(x[i], expected) << rung << " in place at " << i << " of " << count;
      }
    }
  }
}

TEST(Transfer, ErrorsNameTheArgument) {
  std::vector<float> x(24);
  std::vector<float> y(24);
  const auto expect = [](const std::string& wanted, auto&& f) {
    std::string text;
    try {
      f();
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_NE(text.find(wanted), std::string::npos) << "'" << text << "' lacks '" << wanted << "'";
  };
  Context context = Context::simt();
  const TensorRef whole = vector_of(y);
  expect("x has strides", [&] {
    transfer(context, TensorRef(x.data(), DType::f32, Extents{12}, Extents{2}),
             TensorRef(y.data(), DType::f32, Extents{12}));
  });
  expect("function add",
         [&] { transfer(context, vector_of(x), whole, {.function = ElementwiseFunction::add}); });
  expect("x", [&] { transfer(context, TensorRef(x.data(), DType::f32, Extents{23}), whole); });
  expect("y overlaps x", [&] {
    transfer(context, TensorRef(x.data(), DType::f32, Extents{12}),
             TensorRef(x.data() + 6, DType::f32, Extents{12}));
  });
  expect("x is on cuda:0", [&] {
    transfer(context, TensorRef(x.data(), DType::f32, Extents{24}, Device{Backend::cuda, 0}),
             whole);
  });
  Context cpu = Context::cpu(1);
  expect("transfer", [&] { transfer(cpu, vector_of(x), whole); });
}

}  // namespace
}  // namespace rung
