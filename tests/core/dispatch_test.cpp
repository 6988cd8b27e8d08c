// SPDX-License-Identifier: Apache-2.0
// Selection of an operator's rung for a call, the error if no rung supports it, and the cache of
// selections.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "doubling.hpp"
#include "expect_error.hpp"
#include "fake_device.hpp"
#include "rung/harness/any_operator.hpp"

namespace rung {
namespace {

using test::expect_error;

/// Parameter: true if calls are made of copied tensors, false if of references.
class Dispatch : public testing::TestWithParam<bool> {
 protected:
  Dispatch() {
    trace = {};
    library_present = true;
  }
  static Double::Args args(const Tensor& x, const Tensor& y) { return bind<Double>({x, y}); }
  void twice(const ConstTensorRef& x, const TensorRef& y, Pick pick = best, int option = 0) {
    if (GetParam()) return call<Double>(context, {x, y, option}, pick);
    call<Double>(context, pick,
                 [&]<class Call>() { return Call{.x = x, .y = y, .option = option}; });
  }

  Context context = Context::cpu(1);
  Tensor x5{DType::f32, {5}}, y5{DType::f32, {5}};
  Tensor x6{DType::f32, {6}}, y6{DType::f32, {6}};
  Tensor x8{DType::f32, {8}}, y8{DType::f32, {8}};
  Tensor integers{DType::i32, {5}}, integers_out{DType::i32, {5}};
};

using Names = std::vector<std::string>;

TEST_P(Dispatch, TakesTheLeastEstimateAmongThoseThatSupport) {
  // "wide" costs nothing but needs a multiple of 8; "slow" moves twice the bytes of "plain".
  twice(x5, y5);
  twice(x8, y8);
  EXPECT_EQ(trace.ran, (Names{"plain", "wide"}));
}

TEST_P(Dispatch, OfEqualEstimatesTheHighestStepWins) {
  // "early_tie" and "late_tie" are as fast as "wide", and are listed before and after it.
  EXPECT_EQ(choose<Double>(args(x8, y8), context).info.name, "wide");
}

TEST_P(Dispatch, OfEqualEstimatesAShapesKernelBeatsTheLastStepAndWhatItStandsBeside) {
  const Tensor x(DType::f32, {14}), y(DType::f32, {14});
  EXPECT_EQ(choose<Double>(args(x, y), context).info.name, "beside");
  const RungInfo step{.name = "step", .step = 90};
  const RungInfo shape{.name = "shape", .after = "step", .kind = RungKind::shape};
  const RungInfo other{.name = "a", .after = "shape", .kind = RungKind::shape};
  for (const auto& [winner, loser] : {std::pair{&shape, &step}, {&other, &shape}}) {
    EXPECT_TRUE(wins_tie(*winner, *loser));
    EXPECT_FALSE(wins_tie(*loser, *winner));
  }
}

TEST_P(Dispatch, ARungIsFoundByNameInAnyFolder) {
  twice(x5, y5, {"any_type"});
  EXPECT_EQ(trace.ran, (Names{"any_type"}));
}

TEST_P(Dispatch, TheFolderSaysWhetherARungIsAStep) {
  EXPECT_EQ(rung_kind("rung/ops/gemm/cuda/shapes/gemv.cu"), RungKind::shape);
  EXPECT_EQ(rung_kind("/build/generated/rung/ops/gemm/cuda/types/fp8.sm90a.cu"), RungKind::type);
  EXPECT_EQ(rung_kind("rung/ops/gemm/cuda/010_naive.cu"), RungKind::step);
  EXPECT_EQ(rung_kind("rung/ops/shapes/cuda/010_naive.cu"), RungKind::step);
  EXPECT_EQ(rung_kind("naive.cu"), RungKind::step);
}

TEST_P(Dispatch, NeverPicksPeersOrTeachingRungs) {
  EXPECT_EQ(choose<Double>(args(x5, y5), context).info.name, "plain");
  twice(x5, y5, {"vendor", true});
  twice(x5, y5, {"wrong_on_purpose"});
  EXPECT_EQ(trace.ran, (Names{"vendor", "wrong_on_purpose"}));
}

TEST_P(Dispatch, LoadsVendorsLibrariesOnlyForTheWorkbench) {
  library_asked = 0;
  expect_error(ErrorCode::unsupported, {"'vendor' is a vendor's library"},
               [&] { twice(x5, y5, {"vendor"}); });
  expect_error(ErrorCode::invalid_argument, {"has no rung 'nope'"},
               [&] { twice(x5, y5, {"nope"}); });
  expect_error(ErrorCode::unsupported, {"no rung takes this call"},
               [&] { twice(integers, integers_out); });
  EXPECT_EQ(library_asked, 0) << "whether it is there shows only once it is loaded";
  EXPECT_TRUE(trace.ran.empty());
}

TEST_P(Dispatch, KeepsToItsBackend) {
  Context gpu = Context::cuda();
  EXPECT_EQ(choose<Double>(args(x5, y5), gpu).info.name, "elsewhere");
  expect_error(ErrorCode::invalid_argument,
               {"double on cuda has no rung 'plain', which is a rung on cpu; accepted: elsewhere"},
               [&] { choose<Double>(args(x5, y5), gpu, {"plain"}); });
}

TEST_P(Dispatch, RemembersTheLastChoice) {
  const Tensor other_x(DType::f32, {5});
  std::fill_n(other_x.data<float>(), 5, 4.0f);
  twice(x8, y8);
  twice(x5, y5);
  const Trace first = trace;
  twice(other_x, y5);
  EXPECT_EQ(trace.bindings, first.bindings);
  EXPECT_EQ(trace.support_questions, first.support_questions);
  EXPECT_EQ(trace.ran, (Names{"wide", "plain", "plain"}));
  EXPECT_EQ(y5.data<float>()[4], 8.0f) << "the remembered call must use the new pointers";

  twice(x8, y8);
  EXPECT_GT(trace.bindings, first.bindings) << "another layout is another choice";
  EXPECT_EQ(trace.ran.back(), "wide");
}

TEST_P(Dispatch, ChoosesTheSameRungForAnyNumberOfThreads) {
  for (const int threads : {1, 2, 3, 64}) {
    Context some = Context::cpu(threads);
    call<Double>(some, {x6, y6});
    EXPECT_EQ(trace.ran.back(), "team") << threads << " threads";
  }
}

TEST_P(Dispatch, ChoosesTheFastestRungForItsThreadsWhereAsked) {
  twice(x6, y6);
  context.set_choice(Choice::fastest);
  twice(x6, y6);
  context.set_choice(Choice::repeatable);
  twice(x6, y6);
  EXPECT_EQ(trace.ran, (Names{"team", "plain", "team"})) << "on one thread";
  expect_error(ErrorCode::invalid_argument, {"choice is 7", "accepted: repeatable, fastest"},
               [&] { context.set_choice(Choice{7}); });
}

TEST_P(Dispatch, KeepsTheRuleOfChoiceDuringACall) {
  trace.during = [](Context& used) {
    expect_error(ErrorCode::invalid_argument, {"the context is in a call", "between two calls"},
                 [&] { used.set_choice(Choice::fastest); });
  };
  twice(x6, y6);
  EXPECT_EQ(context.choice(), Choice::repeatable);
}

TEST_P(Dispatch, RefusesACallOnAContextThatAnotherThreadUses) {
  int refused = 0;
  trace.during = [&](Context& used) {
    std::jthread([&] {
      expect_error(ErrorCode::invalid_argument, {"the context is in use by another thread"}, [&] {
        ++refused;
        call<Double>(used, {x5, y5});
      });
    });
  };
  twice(x6, y6);
  EXPECT_EQ(refused, 1);
  EXPECT_EQ(trace.ran, Names{"team"});
  std::jthread([&] { twice(x5, y5); });
  EXPECT_EQ(trace.ran.back(), "plain") << "one thread after another may use it";
}

TEST_P(Dispatch, NestsCallsOfOneThread) {
  trace.during = [&](Context& used) { call<Double>(used, {x5, y5}); };
  twice(x6, y6);
  twice(x5, y5);
  EXPECT_EQ(trace.ran, (Names{"team", "plain", "plain"}));
}

TEST_P(Dispatch, AFailedCallLeavesItsContextFree) {
  trace.during = [](Context&) { throw Error(ErrorCode::device, "broken"); };
  expect_error(ErrorCode::device, {"broken"}, [&] { twice(x6, y6); });
  std::jthread([&] { twice(x5, y5); });
  EXPECT_EQ(trace.ran.back(), "plain");
}

TEST_P(Dispatch, NothingButPointersMayDifferFromTheLastCall) {
  alignas(64) float memory[64] = {};
  const ConstTensorRef x(memory, {4});
  const TensorRef y(memory + 32, {4});
  const auto binds = [&](auto change) {
    twice(x, y);
    twice(x, y);
    const int before = trace.bindings;
    ConstTensorRef other_x = x;
    TensorRef other_y = y;
    int option = 0;
    change(other_x, other_y, option);
    try {
      twice(other_x, other_y, best, option);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::internal) << "refused for what has changed";
    }
    return trace.bindings - before;
  };
  EXPECT_EQ(binds([](auto&, auto&, int&) {}), 0);
  EXPECT_EQ(binds([&](auto& a, auto&, int&) { a.data = memory + 16; }), 0);
  EXPECT_EQ(binds([&](auto& a, auto& b, int&) {
              a.data = memory + 16;
              b.data = memory + 48;
            }),
            0);
  EXPECT_EQ(binds([](auto&, auto&, int& option) { option = 1; }), 1);
  EXPECT_EQ(binds([](auto& a, auto& b, int&) { a.shape[0] = b.shape[0] = 3; }), 1);
  EXPECT_EQ(binds([](auto&, auto& b, int&) { b.shape[0] = 3; }), 1);
  EXPECT_EQ(binds([](auto& a, auto&, int&) { a.strides[0] = 2; }), 1);
  EXPECT_EQ(binds([](auto&, auto& b, int&) { b.strides[0] = 2; }), 1);
  EXPECT_EQ(binds([&](auto& a, auto&, int&) { a = ConstTensorRef(memory, {4, 1}); }), 1);
  EXPECT_EQ(binds([](auto& a, auto&, int&) { a.dtype = DType::i32; }), 1);
  EXPECT_EQ(binds([](auto&, auto& b, int&) { b.dtype = DType::i32; }), 1);
  EXPECT_EQ(binds([](auto& a, auto&, int&) { a.device = {Backend::cuda, 0}; }), 1);
  EXPECT_EQ(binds([](auto& a, auto&, int&) { a.device = {Backend::cuda, 1}; }), 1);
  EXPECT_EQ(binds([&](auto& a, auto&, int&) { a.data = memory + 17; }), 1) << "alignment";
  EXPECT_EQ(binds([&](auto&, auto& b, int&) { b.data = memory + 33; }), 1) << "alignment";
  // Malformed arguments are reported before the call is bound.
  twice(x, y);
  ConstTensorRef broken = x;
  broken.shape.rank = 9;
  expect_error(ErrorCode::invalid_argument, {"x"}, [&] { twice(broken, y); });
  broken = x;
  broken.strides.rank = 0;
  expect_error(ErrorCode::invalid_argument, {"x"}, [&] { twice(broken, y); });
  broken = x;
  broken.data = nullptr;
  expect_error(ErrorCode::invalid_argument, {"x"}, [&] { twice(broken, y); });
}

TEST_P(Dispatch, MemoriesBelongToTheirContext) {
  twice(x5, y5);
  Context other = Context::cpu(2);
  call<Double>(other, {x5, y5});
  EXPECT_EQ(trace.bindings, 2);
  // A context assigned to another brings its own remembered calls; the replaced context's are lost.
  Context gpu = Context::cuda();
  call<Double>(gpu, {x5, y5});
  gpu = std::move(other);
  call<Double>(gpu, {x5, y5});
  EXPECT_EQ(trace.bindings, 3);
  EXPECT_EQ(trace.ran, (Names{"plain", "plain", "elsewhere", "plain"}));
}

TEST_P(Dispatch, AskingByNameDoesNotDisturbTheMemory) {
  twice(x5, y5);
  twice(x5, y5, {"slow"});
  twice(x5, y5);
  EXPECT_EQ(trace.ran, (Names{"plain", "slow", "plain"}));
}

TEST_P(Dispatch, AFailedCallIsNotRemembered) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    expect_error(ErrorCode::unsupported, {"takes f32 only"},
                 [&] { twice(integers, integers_out); });
  }
  EXPECT_EQ(trace.bindings, 2);
  EXPECT_TRUE(trace.ran.empty());
}

TEST_P(Dispatch, ChecksBeforeAnythingRuns) {
  const Tensor matrix(DType::f32, {2, 2});
  expect_error(ErrorCode::invalid_argument, {"single axis"}, [&] { twice(matrix, matrix); });
  expect_error(ErrorCode::invalid_argument, {"overlaps"}, [&] { twice(x5, x5); });
  twice(x5, y5);
  // The layout is cached, but not these pointers: their alignment is the same.
  expect_error(ErrorCode::invalid_argument, {"overlaps"}, [&] { twice(x5, x5); });
  EXPECT_EQ(trace.ran, Names{"plain"});
}

TEST_P(Dispatch, SaysWhyNoRungTakesTheCall) {
  expect_error(ErrorCode::unsupported,
               {"double on cpu: no rung takes this call:\n  vendor: ", "only by name",
                "\n  slow: takes f32 only\n  wrong_on_purpose: a teaching rung",
                "\n  plain: takes f32 only\n  early_tie: the length is no multiple of 8",
                "\n  wide: the length is no multiple of 8"},
               [&] { twice(integers, integers_out); });
  EXPECT_TRUE(trace.ran.empty());
}

TEST_P(Dispatch, SaysWhyTheNamedRungDoesNot) {
  expect_error(ErrorCode::unsupported,
               {"rung 'wide' does not take this call: the length is no multiple of 8"},
               [&] { twice(x5, y5, {"wide"}); });
  library_present = false;
  expect_error(ErrorCode::unsupported, {"'vendor'", "libvendor.so is missing"}, [&] {
    twice(x5, y5, {"vendor", true});
  });
  expect_error(ErrorCode::invalid_argument,
               {"has no rung 'wid' (did you mean 'wide'?); accepted: slow, "
                "wrong_on_purpose, plain, early_tie, late_tie, wide"},
               [&] { twice(x5, y5, {"wid"}); });
  EXPECT_TRUE(trace.ran.empty());
}

TEST_P(Dispatch, RungsAreListedByBackendPeerKindAndStep) {
  Names names;
  for (const RungInfo* rung : the_operator.rungs()) names.emplace_back(rung->name);
  EXPECT_EQ(names,
            (Names{"slow", "wrong_on_purpose", "plain", "early_tie", "late_tie", "wide", "team",
                   "last", "beside", "fourteens", "any_type", "vendor", "elsewhere"}));
  const RungInfo& info = *the_operator.rungs()[5];
  EXPECT_EQ(info.after, "plain");
  EXPECT_NE(std::string(info.file).find("doubling.hpp"), std::string::npos);
}

TEST_P(Dispatch, OperatorsAreFoundByName) {
  EXPECT_EQ(&find_operator("double"), &the_operator);
  const std::vector<const AnyOperator*> all = operators();
  EXPECT_TRUE(std::is_sorted(
      all.begin(), all.end(),
      [](const AnyOperator* a, const AnyOperator* b) { return a->name() < b->name(); }));
  EXPECT_EQ(std::count(all.begin(), all.end(), &the_operator), 1);
  expect_error(ErrorCode::invalid_argument, {"no operator 'dobule'", "double"},
               [] { find_operator("dobule"); });
}

TEST_P(Dispatch, AnInstanceIsAWholeProblem) {
  const auto instance = the_operator.make(Problem::parse("f32 8"), {}, 1, {});
  EXPECT_EQ(instance->chosen(context).name, "wide");
  EXPECT_EQ(instance->cost().bytes, 64.0);
  EXPECT_EQ(instance->traffic(slow.info).bytes, 128.0);
  EXPECT_EQ(instance->traffic(plain.info).bytes, 64.0) << "what must be, where a rung says nothing";
  EXPECT_EQ(instance->tolerance(vendor.info).relative, 1.0);
  EXPECT_FALSE(the_operator.make(Problem::parse("f32 7"), {}, 1, {})->supports(wide.info, context));
  instance->run(slow.info, context);
  instance->call(context);
  EXPECT_EQ(trace.ran, (Names{"slow", "wide"}));
  EXPECT_EQ(instance->inputs.damage(), "");
  Oracle oracle;
  oracle.outputs.resize(1);
  instance->reference(oracle);
  const Tensor y = instance->inputs.host(1);
  for (std::int64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(y.data<float>()[i], oracle.outputs[0].value.at(static_cast<std::size_t>(i)));
  }
}

TEST_P(Dispatch, InvokesFromTheCommandLine) {
  Invocation invocation;
  invocation.tensors.emplace("x", x5);
  std::fill_n(x5.data<float>(), 5, 1.5f);
  EXPECT_TRUE(invocation.has("x"));
  EXPECT_FALSE(invocation.has("y"));
  the_operator.invoke(context, invocation, {"slow"});
  EXPECT_EQ(trace.ran, Names{"slow"});
  EXPECT_EQ(invocation.result.data<float>()[4], 3.0f);
}

INSTANTIATE_TEST_SUITE_P(Calls, Dispatch, testing::Bool(),
                         [](const auto& of) { return of.param ? "Copied" : "ByReference"; });

}  // namespace
}  // namespace rung
