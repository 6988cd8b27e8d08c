// SPDX-License-Identifier: Apache-2.0
// Measures tensor-core throughput: warpgroup matrix multiply-adds (wgmma) on operands that stay in
// shared memory. Older instructions reach about 60 % of the throughput on Hopper and are no
// ceiling; GPUs without wgmma are not measured.
//
// Shapes   a wgmma is 64 x 128 x 16 (x 8 for tf32), so that shared memory delivers an operand pair
//          (6 KiB) in less time than the multiplication takes (64 cycles).
#include <cuda_runtime.h>

#include "rung/bench/gpu_rates.hpp"

namespace rung::bench {
namespace {

constexpr int warpgroups = 4;  // per SM: two hide each other's issue, four leave a margin
constexpr int turns = 4096;    // wgmma per warpgroup and launch
[[maybe_unused]] constexpr int in_flight = 8;  // per commit group
// Bytes per warpgroup: A in the first half, B in the second.
[[maybe_unused]] constexpr int operand_bytes = 8192;

enum class Element { bf16, f16, tf32 };

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)

/// Returns the descriptor of an operand in shared memory without swizzle: core matrices of 8 x 16
/// bytes, 128 bytes apart along k and 256 along the other axis.
__device__ unsigned long long descriptor(const void* operand) {
  const auto address = static_cast<unsigned long long>(__cvta_generic_to_shared(operand));
  return ((address & 0x3ffff) >> 4) | (128ull >> 4) << 16 | (256ull >> 4) << 32;
}

// One instruction per element type. A macro, because the text of an instruction must be a literal
// and each of the 64 sums must be an operand.
#define RUNG_WGMMA(instruction, transposes)                                                       \
  asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0;wgmma.mma_async.sync.aligned." instruction     \
               " {"                                                                               \
               "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"   \
               "}, %64, %65, p, 1, 1" transposes ";}"                                             \
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),          \
                 "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),        \
                 "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]),    \
                 "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),    \
                 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]),    \
                 "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]),    \
                 "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]),    \
                 "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),    \
                 "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]),    \
                 "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]),    \
                 "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])                               \
               : "l"(a), "l"(b))

template <Element element>
__device__ void multiply(float (&d)[64], unsigned long long a, unsigned long long b) {
  if constexpr (element == Element::bf16) RUNG_WGMMA("m64n128k16.f32.bf16.bf16", ", 0, 0");
  if constexpr (element == Element::f16) RUNG_WGMMA("m64n128k16.f32.f16.f16", ", 0, 0");
  if constexpr (element == Element::tf32) RUNG_WGMMA("m64n128k8.f32.tf32.tf32", "");
}

#undef RUNG_WGMMA

#endif

template <Element element>
__global__ void __launch_bounds__(128 * warpgroups) tensor_core_rate(float* out) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  __shared__ alignas(128) unsigned char operands[warpgroups * operand_bytes];
  // Operands are ordinary numbers: zeros would draw less power than real work and allow higher
  // clocks.
  for (unsigned i = threadIdx.x; i < sizeof(operands) / 4; i += blockDim.x) {
    const unsigned bits = (i * 2654435761u >> 9) & 0x007f007fu;
    reinterpret_cast<unsigned*>(operands)[i] = 0x3c003c00u | bits | (i & 1u) << 31 | (i & 2u) << 14;
  }
  asm volatile("fence.proxy.async;" ::: "memory");  // wgmma reads through the async proxy
  __syncthreads();
  const unsigned char* mine = operands + threadIdx.x / 128 * operand_bytes;
  const unsigned long long a = descriptor(mine);
  const unsigned long long b = descriptor(mine + operand_bytes / 2);
  float sum[64] = {};
  for (int turn = 0; turn < turns; turn += in_flight) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int i = 0; i < in_flight; ++i) {
      multiply<element>(sum, a, b);
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  }
  float total = 0;
  for (const float one : sum) total += one;
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
#else
  (void)out;
#endif
}

template <Element element>
double operations_per_second(int multiprocessors, float* out) {
  const double k = element == Element::tf32 ? 8 : 16;
  const double operations = 2.0 * 64 * 128 * k * turns * warpgroups * multiprocessors;
  return operations / min_launch_seconds([&] {
           tensor_core_rate<element><<<multiprocessors, 128 * warpgroups>>>(out);
         });
}

}  // namespace

void measure_tensor_cores(Gpu& gpu) {
  if (gpu.compute_capability != 90) return;
  // In a build for older GPUs the kernel is empty and its time is meaningless.
  cudaFuncAttributes built{};
  check_gpu(cudaFuncGetAttributes(&built, tensor_core_rate<Element::bf16>));
  if (built.ptxVersion < 90) return;
  const DeviceBuffer out(static_cast<std::size_t>(gpu.multiprocessors) * 128 * warpgroups *
                         sizeof(float));
  auto* const floats = static_cast<float*>(out.get());
  const int count = gpu.multiprocessors;
  gpu.arithmetic.push_back({"bf16", operations_per_second<Element::bf16>(count, floats)});
  gpu.arithmetic.push_back({"f16", operations_per_second<Element::f16>(count, floats)});
  gpu.arithmetic.push_back({"tf32", operations_per_second<Element::tf32>(count, floats)});
}

}  // namespace rung::bench
