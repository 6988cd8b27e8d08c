// SPDX-License-Identifier: Apache-2.0
// gemm / fp8 wgmma
//
// Idea     8-bit floats on wgmma, whose sums keep about 14 bits: after 128 steps of k (four
//          instructions), a consumer adds the sums to f32 registers, scaled by their blocks'
//          factors if given. While one consumer adds, the other multiplies.
// Changes  against persistent: a second set of sums, of 128 columns: a consumer processes the
//          tile's 256 columns in two halves. Scale factors are loaded a block of k ahead.
// Cost     half the bytes of 16-bit operands per product; an addition per sum and 128 steps of k.
// Limits   wgmma requires k contiguous in 8-bit operands: other layouts, and those that TMA does
//          not support, are first copied, up to 1 GiB. Threads write C if TMA cannot.
// Source   DeepSeek-AI, "DeepSeek-V3 Technical Report", section 3.3.2, for the promoted sums.
#ifndef RUNG_SPLIT_TYPE
#define RUNG_SPLIT_TYPE e4m3, e4m3
#endif

#include "rung/cpu/split.hpp"  // types: e4m3,e4m3 e4m3,e5m2 e5m2,e4m3 e5m2,e5m2
#include "rung/ops/gemm/cuda/types/fp8_wgmma.cuh"

namespace rung::gemm_cuda::inline RUNG_TARGET {

template <>
void run_fp8_wgmma<RUNG_SPLIT_TYPE>(Context& context, const Fp8Call& call, const TensorPlan& plan,
                                    float* partial) {
  launch_fp8_wgmma<RUNG_SPLIT_TYPE>(context, call, plan, partial);
}

}  // namespace rung::gemm_cuda::inline RUNG_TARGET

#if RUNG_SPLIT_ONCE
namespace rung {
namespace {

using namespace gemm_cuda;

/// Returns the product, transposed if needed so that C's rows are contiguous; never transposed with
/// block scales.
Gemm::Args turned(const Gemm::Args& given) {
  if (given.has_scales() || given.c.strides[2] == 1 || given.c.strides[1] != 1) return given;
  Gemm::Args args = given;
  std::swap(args.a, args.b);
  const auto turn = [](auto& tensor) {
    if (tensor.data == nullptr) return;
    std::swap(tensor.shape[1], tensor.shape[2]);
    std::swap(tensor.strides[1], tensor.strides[2]);
  };
  turn(args.a);
  turn(args.b);
  turn(args.c);
  turn(args.bias);
  turn(args.residual);
  return args;
}

Support supports(const Gemm::Args& args, const Context& context) {
  if (const Support types = require_small_floats(args); !types) return types;
  if (const Support sizes = require_mapped_sizes(args, context); !sizes) return sizes;
  return ByteOperands(args).bytes() <= most_packed_bytes ? supported
                                                         : unsupported("copies of more than 1 GiB");
}

TensorPlan plan_of(const Gemm::Args& args, const Context& context) {
  return plan_tensor(args, context, fp8_tiles, true);
}

Work work(const Gemm::Args& args, const Context& context) {
  const Gemm::Args call = turned(args);
  const TensorPlan plan = plan_of(call, context);
  Work work = tensor_work(call, context, fp8_tiles[plan.tile], plan.slices);
  ByteOperands(args).add_to(work);
  if (args.has_scales()) work.path = "scales";
  return work;
}

/// Combines the slices in `partial` into C.
template <class Out>
void add_fp8_slices(Context& context, const Gemm::Args& args, const float* partial, int slices) {
  Gemm::Args retyped = args;
  retyped.a.dtype = retyped.b.dtype = dtype_of<Out>;
  add_slices(context, finish_of<Out>(retyped), partial, slices);
}

void run(const Gemm::Args& given, Context& context) {
  const Gemm::Args args = turned(given);
  const TensorPlan plan = plan_of(args, context);
  ByteOperands operands(args);
  const Finish<e4m3> finish = finish_of<e4m3>(as_bytes(args));
  const std::int64_t packed = operands.bytes();
  const std::size_t partial_size = plan.slices > 1 ? partial_bytes(finish, plan.slices) : 0;
  auto* const memory = static_cast<unsigned char*>(
      context.workspace(static_cast<std::size_t>(packed) + partial_size));
  auto* const partial = reinterpret_cast<float*>(memory + packed);
  operands.pack(context, memory);
  const Fp8Call call{finish, args.c.dtype, operands.a, operands.b, block_scales(args)};
  visit<e4m3, e5m2>(args.a.dtype, [&]<class A>() {
    visit<e4m3, e5m2>(args.b.dtype,
                      [&]<class B>() { run_fp8_wgmma<A, B>(context, call, plan, partial); });
  });
  if (plan.slices == 1) return;
  visit<float, f16, bf16>(
      args.c.dtype, [&]<class Out>() { add_fp8_slices<Out>(context, args, partial, plan.slices); });
}

const Rung<Gemm> self{{.name = "fp8_wgmma",
                       .after = "persistent",
                       .backend = device_backend,
                       .supports = supports,
                       .tile = {.rows = fp8_tiles[0].rows, .columns = fp8_tiles[0].columns},
                       .work = work,
                       .run = run}};

}  // namespace
}  // namespace rung
#endif  // RUNG_SPLIT_ONCE
