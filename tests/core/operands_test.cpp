// SPDX-License-Identifier: Apache-2.0
// Code that core derives from an operator's list of operands: checks, and the comparison with the
// previous call.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "expect_error.hpp"
#include "rung/core/operands.hpp"

namespace rung {
namespace {

using test::expect_error;

/// Operator y = x + bias, with an optional bias; on request also writes the square of the sum.
/// bind() reverses x, as a reversed scan does.
struct Sum {
  static constexpr std::string_view name = "sum";
  struct Call {
    ConstTensorRef x = {};
    ConstTensorRef bias = {};
    TensorRef y = {};
    TensorRef square = {};
    int option = 0;
    bool operator==(const Call&) const = default;
  };
  struct Args : Call {
    int bound_option = 0;
  };
  static constexpr void operands(auto& call, auto&& visit) {
    visit(in(call.x, "x"), optional_in(call.bias, "bias"), out(call.y, "y").may_be("x"),
          optional_out(call.square, "square"));
  }
  static void bind(Args& args) {
    args.bound_option = args.option;
    if (args.x.shape[0] < 2) return;
    args.x.data = static_cast<const float*>(args.x.data) + (args.x.shape[0] - 1);
    args.x.strides[0] = -1;
  }
};

class Operands : public testing::Test {
 protected:
  static TensorRef four(float* data) { return TensorRef(data, {4}); }

  /// Returns whether `next` repeats the remembered call, after comparing them.
  bool repeats(const Sum::Call& next) { return rung::repeats<Sum>(next, last, args, moved); }
  void remember(const Sum::Call& call) {
    last = call;
    args = bind<Sum>(call);
    moved = false;
  }

  alignas(64) std::array<float, 64> memory{};
  float* const a = memory.data();
  Context context = Context::cpu(1);
  Sum::Call last;
  Sum::Args args;
  bool moved = false;
};

TEST_F(Operands, TheSameCallRepeatsAndNothingMoves) {
  const Sum::Call call{.x = four(a), .y = four(a + 16)};
  remember(call);
  EXPECT_TRUE(repeats(call));
  EXPECT_FALSE(moved);
}

TEST_F(Operands, NewPointersGoIntoWhatWasBoundToo) {
  remember({.x = four(a), .y = four(a + 16)});
  EXPECT_TRUE(repeats({.x = four(a + 32), .y = four(a + 16)}));
  EXPECT_TRUE(moved);
  EXPECT_EQ(args.x.data, a + 32 + 3) << "binding had moved the pointer to the last element";
  EXPECT_EQ(last.x.data, a + 32);
  EXPECT_EQ(args.y.data, a + 16);
}

TEST_F(Operands, EverythingElseIsAnotherCall) {
  const Sum::Call call{.x = four(a), .y = four(a + 16)};
  const auto differs = [&](auto change) {
    Sum::Call other = call;
    change(other);
    remember(call);
    return !repeats(other);
  };
  EXPECT_TRUE(differs([](Sum::Call& c) { c.option = 1; }));
  EXPECT_TRUE(differs([](Sum::Call& c) { c.x.shape[0] = 3; }));
  EXPECT_TRUE(differs([](Sum::Call& c) { c.x.strides[0] = 2; }));
  EXPECT_TRUE(differs([](Sum::Call& c) { c.y.dtype = DType::i32; }));
  EXPECT_TRUE(differs([](Sum::Call& c) { c.x.device = {Backend::cuda, 0}; }));
  EXPECT_TRUE(differs([&](Sum::Call& c) { c.bias = four(a + 32); })) << "it was left out";
  EXPECT_TRUE(differs([&](Sum::Call& c) { c.x.data = a + 33; })) << "another alignment";
  EXPECT_TRUE(differs([](Sum::Call& c) { c.x.data = nullptr; }));
}

TEST_F(Operands, OverlapIsAnErrorUnlessTheyAreOne) {
  validate<Sum>({.x = four(a), .y = four(a)}, context);
  validate<Sum>({.x = four(a), .bias = four(a), .y = four(a + 4)}, context);  // both are read
  const auto overlaps = [&](const char* words, const Sum::Call& call) {
    expect_error(ErrorCode::invalid_argument, {words}, [&] { validate<Sum>(call, context); });
  };
  overlaps("y overlaps x without being the same", {.x = four(a), .y = four(a + 2)});
  overlaps("y overlaps bias", {.x = four(a), .bias = four(a + 8), .y = four(a + 8)});
  overlaps("y overlaps square", {.x = four(a), .y = four(a + 8), .square = four(a + 8)});
  overlaps("square overlaps x", {.x = four(a), .y = four(a + 8), .square = four(a)});
}

TEST_F(Operands, ChecksEveryOperandThatIsGiven) {
  const auto fails = [&](const char* words, const Sum::Call& call) {
    expect_error(ErrorCode::invalid_argument, {words}, [&] {
      static_cast<void>(bind<Sum>(call));
      validate<Sum>(call, context);
    });
  };
  TensorRef broken = four(a + 32);
  broken.shape.rank = 9;
  fails("bias", {.x = four(a), .bias = broken, .y = four(a + 16)});
  fails("square", {.x = four(a), .y = four(a + 16), .square = broken});
  TensorRef folded = four(a + 32);
  folded.strides[0] = 0;
  fails("square (4, strides 0) overlaps itself",
        {.x = four(a), .y = four(a + 16), .square = folded});
  TensorRef elsewhere = four(a + 32);
  elsewhere.device = {Backend::cuda, 0};
  fails("bias is on cuda:0", {.x = four(a), .bias = elsewhere, .y = four(a + 16)});
  fails("x (4) has a null data pointer",
        {.x = ConstTensorRef(static_cast<const float*>(nullptr), {4}), .y = four(a)});
}

TEST_F(Operands, OnASimulatedGpuAreRefusedByABuildWithoutOne) {
  TensorRef simulated = four(a + 16);
  simulated.device = {Backend::simt, 0};
  const Sum::Call calls[] = {{.x = four(a), .y = simulated}, {.x = simulated, .y = four(a)}};
  for (const Sum::Call& call : calls) {
    if (device_api(Backend::simt) != nullptr) {
      validate<Sum>(call, context);
      continue;
    }
    expect_error(ErrorCode::invalid_argument,
                 {call.x.device.backend == Backend::simt ? "x is on simt:0" : "y is on simt:0",
                  "no simt backend", "accepted for host memory: cpu:0"},
                 [&] { validate<Sum>(call, context); });
  }
}

TEST_F(Operands, NothingToWriteIsWhereEveryOutputIsEmpty) {
  const TensorRef none(a, {0});
  EXPECT_TRUE(writes_nothing<Sum>({.x = none, .y = none}));
  EXPECT_FALSE(writes_nothing<Sum>({.x = none, .y = none, .square = four(a)}));
  EXPECT_FALSE(writes_nothing<Sum>({.x = none, .y = four(a)}));
  const TensorRef scalar(a, Extents{});
  EXPECT_FALSE(writes_nothing<Sum>({.x = none, .y = none, .square = scalar}));
}

}  // namespace
}  // namespace rung
