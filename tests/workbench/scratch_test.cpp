// SPDX-License-Identifier: Apache-2.0
// Scratch memory is bounded by the bytes that a call reads and writes, whatever its extents are.
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "rung/harness/any_operator.hpp"
#include "tests/support/long_test.hpp"

namespace rung {
namespace {

struct HostileCall {
  std::string_view op;
  std::string_view problem;
};

// One or two extents have all elements; the others are tiny. Scratch that grows with an extent
// times the number of threads, or with an extent of a broadcast axis, then far exceeds the bound.
constexpr HostileCall hostile_calls[] = {
    {"activation_backward", "f16 4194304,relu"},
    {"attention", "f32 1x1x1x64,keys=65536"},
    {"attention", "f16 1x8x1x64,kv=1,keys=65536"},
    {"attention", "f32 1x1x16384x2,keys=2"},
    {"attention", "f32 16384x1x2x2"},
    {"attention_backward", "f32 1x1x1x64,keys=65536"},
    {"attention_backward", "f16 1x8x1x64,kv=1,keys=65536"},
    {"attention_backward", "f32 1x1x16384x2,keys=2"},
    {"attention_backward", "f32 16384x1x2x2"},
    {"conv", "f32 1x4194304x1x1,out=1,k=1"},
    {"conv", "f32 1x1048576x1x1,out=1,k=1,nhwc"},
    {"conv", "f32 1x262144x1x1,out=16,k=1,nhwc"},
    {"conv", "f16 1x262144x1x1,out=9,k=1,nhwc"},
    {"conv", "f32 1x1x1x4194304,out=1,k=1x3,p=0x1"},
    {"conv", "f32 1x1x1x4194304,out=1,k=1x3,p=0x1,nhwc"},
    {"conv", "f32 4194304x1x1x1,out=1,k=1"},
    {"conv", "f32 1x1x1x1000000,out=8,k=1x1000000"},
    {"conv", "f32 1x1x1x1000000,out=8,k=1x1000000,nhwc"},
    {"conv", "f32 1x1x1x1000000,out=1,k=1x3,d=1x499999"},
    {"conv", "f32 1x262144x4x4,k=3,p=1,g=262144"},
    {"conv", "f32 1x262144x4x4,k=3,p=1,g=262144,nhwc"},
    {"conv", "f32 1x1x2048x2048,out=1,k=3,p=1,winograd"},
    {"conv_backward_data", "f32 1x4194304x1x1,out=1,k=1"},
    {"conv_backward_data", "f32 1x262144x1x1,out=16,k=1,nhwc"},
    {"conv_backward_data", "f32 1x1x1x4194304,out=1,k=1x3,p=0x1"},
    {"conv_backward_data", "f32 1x1x1x4096,out=8,k=1x4096,nhwc"},
    {"conv_backward_data", "f32 1x262144x4x4,k=3,p=1,g=262144,nhwc"},
    {"conv_backward_filter", "f32 1x4194304x1x1,out=1,k=1"},
    {"conv_backward_filter", "f32 1x262144x1x1,out=16,k=1,nhwc"},
    {"conv_backward_filter", "f32 1x1x1x4194304,out=1,k=1x3,p=0x1"},
    {"conv_backward_filter", "f32 1x1x1x1000000,out=8,k=1x1000000"},
    {"conv_backward_filter", "f32 1x1x1x1000000,out=8,k=1x1000000,nhwc"},
    {"conv_backward_filter", "f32 1x262144x4x4,k=3,p=1,g=262144"},
    {"conv_backward_filter", "f32 1x262144x4x4,k=3,p=1,g=262144,nhwc"},
    {"elementwise", "f16 4194304,add"},
    {"gemm", "f32 1x1x1048576"},
    {"gemm", "f32 1x1048576x1"},
    {"gemm", "f32 1048576x1x1"},
    {"gemm", "f16 1x1x1048576"},
    {"gemm", "bf16 4x4x262144"},
    {"gemm", "f32 3x3x1048576,ta"},
    {"gemm", "f32 1x16x65536,tb"},
    {"gemm", "f32 16x1x65536"},
    {"gemm", "f32 16x65536x1"},
    {"gemm", "f32 65536x2x2,tb"},
    {"gemm", "f32 1x2x2,batch=32768"},
    {"gemm", "i8 1x1x1048576"},
    {"histogram", "u8 4194304"},
    {"histogram", "i32 4194304,bins=1000000"},
    {"histogram", "i32 1000,bins=4194304"},
    {"image", "u8 1x262144x3,box,radius=15"},
    {"image", "u8 262144x1x3,gaussian,radius=3"},
    {"image", "u8 1x4194304x3"},
    {"loss", "f32 1x4194304"},
    {"loss", "f32 2097152x2"},
    {"norm", "f32 1x4194304,gamma,beta"},
    {"norm", "f16 1x4194304,gamma,beta"},
    {"norm", "f32 2097152x2,gamma,beta"},
    {"norm", "f16 4194304x2,axis=0,gamma,beta"},
    {"norm", "f16 4194304x1,axis=0"},
    {"norm_backward", "f32 1x4194304,gamma,weights"},
    {"norm_backward", "f16 3x1048576,gamma,weights"},
    {"norm_backward", "f32 2097152x2,gamma,weights"},
    {"norm_backward", "f16 2097152x2,axis=0,gamma,weights"},
    {"optimizer", "f32 4194304,adam,clip=1"},
    {"pool", "f16 1x1x1x16777216,average,k=1"},
    {"pool", "f16 1x1x16x524288,max,k=1x3,s=1"},
    {"pool", "f32 1x1x16x262144,average,k=3x5,s=1,bias"},
    {"pool", "f16 1x16777216x1x1,average,k=1,nhwc"},
    {"pool", "f16 1x4194304x1x1,l2,k=1,nhwc,bias,gelu"},
    {"pool", "f16 1x4194304x2x2,max,k=2,nhwc,indices=i32"},
    {"pool", "f32 1x1x16x262144,max,k=3,s=1,p=1,indices=i64"},
    {"pool", "f32 1x1x16x262144,weighted,k=3,s=1,p=1"},
    {"pool", "f32 1x1x1x1000000,average,k=1x1000000"},
    {"pool", "f32 1x1x1x9,average,k=1x4194305,p=0x2097152,s=1"},
    {"pool", "f32 1x1x5x5,weighted,k=1048577x1,p=524288x0"},
    {"pool", "f32 1x1x1x1,max,k=1x3,d=1x4194304,p=0x4194304"},
    {"pool_backward", "f16 1x1x1x16777216,average,k=1"},
    {"pool_backward", "f16 1x1x16x1048576,max,k=1x3,s=1"},
    {"pool_backward", "f16 1x1x16x1048576,l2,k=1x3,s=1"},
    {"pool_backward", "f16 1x8388608x1x1,average,k=1,nhwc"},
    {"pool_backward", "f16 1x4194304x2x2,l2,k=2,nhwc"},
    {"pool_backward", "f32 1x1x16x262144,weighted,k=3,s=1,p=1"},
    {"pool_backward", "f32 1x1x5x5,weighted,k=1048577x1,p=524288x0"},
    {"reduce", "f32 4194304"},
    {"reduce", "f32 2x2097152,axes=0"},
    {"reduce", "f32 2097152x2,axes=0"},
    {"reduce", "f32 2097152x2,axes=1"},
    {"reduce", "u8 3x1048576,argmax,axes=0"},
    {"reduce", "f32 4194304,segments=1000000"},
    {"scan", "f32 4194304"},
    {"scan", "f16 2x2097152,axis=0"},
    {"scan", "f32 2097152x2,axis=0"},
    {"scan", "f32 2097152x2"},
    {"scan", "f32 4194304,segments=1000000"},
    {"softmax", "f32 1x4194304"},
    {"softmax", "f16 1x8388608"},
    {"softmax", "f16 8388608x1,axis=0"},
    {"softmax", "f32 4194304x2,axis=0"},
    {"softmax", "f32 2097152x2"},
    {"softmax_backward", "f32 1x4194304"},
    {"softmax_backward", "f16 8388608x1,axis=0"},
    {"softmax_backward", "f32 4194304x2,axis=0"},
    {"softmax_backward", "f32 2097152x2"},
    {"stencil", "f32 4194304,mask=3"},
    {"stencil", "f32 4194304,mask=3,iterations=3"},
    {"stencil", "f32 1x1048576,window=1x31"},
    {"stencil", "u8 1048576x1,window=31x1"},
    {"transfer", "f32 4194304,relu"},
    {"transpose", "f32 2x2097152"},
    {"transpose", "u8 2097152x3"},
};

constexpr double mebibyte = 1 << 20;

/// Bound of docs/reliability.md: a multiple of the bytes of a call's tensors, plus MiB per call and
/// thread.
struct ScratchBound {
  double multiple = 3;
  double per_call = 32;
  double per_thread = 4;
};
ScratchBound bound_of(const AnyOperator& op, const Problem& problem) {
  ScratchBound bound;
  if (problem.has("winograd")) bound.multiple = 4;
  if (op.name().starts_with("conv")) bound.per_thread = 32;
  return bound;
}

double bytes_of(const Instance& made) {
  double bytes = 0;
  for (const Inputs::Entry& entry : made.inputs.entries()) {
    bytes +=
        static_cast<double>(entry.tensor.size()) * static_cast<double>(size_of(entry.tensor.dtype));
  }
  return bytes;
}

void expect_bounded(const Instance& made, const ScratchBound& bound, const Context& context,
                    std::string_view rung) {
  const double tensors = bytes_of(made) / mebibyte;
  const double scratch = static_cast<double>(context.workspace_capacity()) / mebibyte;
  EXPECT_LE(scratch,
            bound.multiple * tensors + bound.per_call + bound.per_thread * context.threads())
      << rung << ", " << context.threads() << " threads: " << scratch << " MiB of scratch beside "
      << tensors << " MiB of tensors";
}

/// Runs every rung that supports the call, each with a context of its own.
void run_rungs(const AnyOperator& op, const Problem& problem, Variant variant,
               std::span<const int> threads_of_runs) {
  SCOPED_TRACE(std::string(op.name()) + " " + problem.to_string() + " " + to_string(variant));
  std::unique_ptr<Instance> made;
  try {
    made = op.make(problem, variant, 1, Device{});
    made->validate(Context::cpu(1));
  } catch (const Error& error) {
    // Some operators do not support all layouts.
    EXPECT_NE(variant.layout, Layout::plain) << error.what();
    return;
  }
  for (const int threads : threads_of_runs) {
    for (const RungInfo* rung : op.rungs()) {
      if (rung->backend != Backend::cpu || rung->peer) continue;
      Context context = Context::cpu(threads);
      if (!made->supports(*rung, context)) continue;
      made->run(*rung, context);
      expect_bounded(*made, bound_of(op, problem), context, rung->name);
    }
  }
}

void run_hostile_calls(std::initializer_list<Layout> layouts, std::span<const int> threads) {
  for (const AnyOperator* op : operators()) {
    if (op->name() == "fake") continue;
    bool tried = false;
    for (const HostileCall& hostile : hostile_calls) {
      if (hostile.op != op->name()) continue;
      tried = true;
      const Problem problem = Problem::parse(hostile.problem);
      for (const Layout layout : layouts) run_rungs(*op, problem, {.layout = layout}, threads);
    }
    EXPECT_TRUE(tried) << op->name() << " has no hostile call here";
  }
}

// With many threads, each of which has scratch; the next test also runs one thread.
TEST(EveryOperator, BoundsItsScratchByWhatACallTouches) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "takes minutes where little is optimized, and asks for the same sizes";
#endif
  constexpr int many[] = {16};
  run_hostile_calls({Layout::plain}, many);
}

TEST(EveryOperator, BoundsItsScratchInEveryLayout) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "takes minutes where little is optimized, and asks for the same sizes";
#endif
  RUNG_LONG_TEST();
  constexpr int one[] = {1};
  constexpr int both[] = {1, 16};
  run_hostile_calls({Layout::plain}, one);
  run_hostile_calls({Layout::strided, Layout::broadcast}, both);
}

}  // namespace
}  // namespace rung
