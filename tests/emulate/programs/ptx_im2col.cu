// SPDX-License-Identifier: Apache-2.0
// im2col copies by asm statements: the pixels that one tap of a filter needs, of images and of
// lines, with padding, steps, and channels that do not exist.
#include <cuda.h>

#include <cstdint>

#include "check.cuh"

constexpr int images = 3, high = 5, wide = 6, channels = 12, loaded = 8, pixels = 16;

__device__ uint32_t local(const void* address) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(address));
}

/// `at`: channel, then w, (h,) image.
template <int spatial>
__global__ void load(const __grid_constant__ CUtensorMap map, int4 at, int2 tap, float* out) {
  __shared__ alignas(128) float tile[pixels * loaded];
  __shared__ alignas(8) uint64_t barrier;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(local(&barrier)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(local(&barrier)),
                 "r"(static_cast<uint32_t>(sizeof(tile)))
                 : "memory");
    const auto x = static_cast<uint16_t>(tap.x), y = static_cast<uint16_t>(tap.y);
    if constexpr (spatial == 2) {
      asm volatile(
          "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
          "[%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(local(tile)),
          "l"(&map), "r"(local(&barrier)), "r"(at.x), "r"(at.y), "r"(at.z), "r"(at.w), "h"(x),
          "h"(y)
          : "memory");
    } else {
      asm volatile(
          "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
          "[%0], [%1, {%3, %4, %5}], [%2], {%6};" ::"r"(local(tile)),
          "l"(&map), "r"(local(&barrier)), "r"(at.x), "r"(at.y), "r"(at.z), "h"(x)
          : "memory");
    }
  }
  __syncthreads();
  uint32_t done = 0;
  while (done == 0) {
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;\n}"
        : "=r"(done)
        : "r"(local(&barrier))
        : "memory");
  }
  for (int i = threadIdx.x; i < pixels * loaded; i += blockDim.x) out[i] = tile[i];
}

struct Window {
  int lower[2], upper[2], step[2];  // along w, along h
};
CUtensorMap encode(float* data, int spatial, Window window, CUtensorMapSwizzle swizzle) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  CUDA(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", &function, 12000,
                                        cudaEnableDefault, &found));
  CHECK(found == cudaDriverEntryPointSuccess);
  const auto call = reinterpret_cast<PFN_cuTensorMapEncodeIm2col_v12000>(function);
  // Of lines each row of an image is one.
  const cuuint64_t image[] = {channels, wide, high, images},
                   line[] = {channels, wide, images * high};
  const cuuint64_t strides[] = {channels * 4, wide * channels * 4, high * wide * channels * 4};
  const cuuint32_t steps[] = {1, static_cast<cuuint32_t>(window.step[0]),
                              spatial == 2 ? static_cast<cuuint32_t>(window.step[1]) : 1, 1};
  CUtensorMap map;
  const auto make = [&](const int* from, cuuint32_t count, cuuint32_t points) {
    return call(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, spatial + 2, data,
                spatial == 2 ? image : line, strides, from, window.upper, count, points, steps,
                CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  const int far[] = {spatial == 2 ? 128 : 32768, 0};
  CHECK(make(far, loaded, pixels) == CUDA_ERROR_INVALID_VALUE);
  CHECK(make(window.lower, loaded, 1025) == CUDA_ERROR_INVALID_VALUE);
  CHECK(make(window.lower, 257, pixels) == CUDA_ERROR_INVALID_VALUE);
  CHECK(make(window.lower, loaded, pixels) == CUDA_SUCCESS);
  return map;
}

int main() {
  Array<float> x(images * high * wide * channels), out(pixels * loaded);
  for (int i = 0; i < x.size; ++i) x[i] = static_cast<float>(i + 1);
  x.up();
  const auto value = [&](int n, int h, int w, int c) {
    const bool exists = n < images && h >= 0 && h < high && w >= 0 && w < wide && c < channels;
    return exists ? x[((n * high + h) * wide + w) * channels + c] : 0.0f;
  };
  // A filter of 3 by 3 with padding; with steps; without either, from the eighth channel on.
  const Window windows[] = {
      {{-1, -2}, {-1, 0}, {1, 1}}, {{-1, 0}, {-1, 1}, {2, 1}}, {{0, 1}, {-2, -1}, {1, 2}}};
  for (int which = 0; which < 3; ++which) {
    const Window window = windows[which];
    const int first_channel = which == 2 ? 8 : 0;
    const CUtensorMap map = encode(x.device, 2, window, CU_TENSOR_MAP_SWIZZLE_NONE);
    int n = which, h = window.lower[1] + window.step[1], w = window.lower[0];
    const int4 at = make_int4(first_channel, w, h, n);
    const int2 tap = make_int2(2, 1);
    load<2><<<1, 64>>>(map, at, tap, out.device);
    CUDA(cudaGetLastError());
    out.down();
    for (int pixel = 0; pixel < pixels; ++pixel) {
      for (int c = 0; c < loaded; ++c) {
        CHECK(out[pixel * loaded + c] == value(n, h + tap.y, w + tap.x, first_channel + c));
      }
      w += window.step[0];
      if (w < wide + window.upper[0]) continue;
      w = window.lower[0];
      h += window.step[1];
      if (h < high + window.upper[1]) continue;
      h = window.lower[1];
      ++n;
    }
  }
  // Lines, their pieces of 16 bytes swapped in every second group of four rows.
  const CUtensorMap map = encode(x.device, 1, {{-1, 0}, {1, 0}, {1, 1}}, CU_TENSOR_MAP_SWIZZLE_32B);
  load<1><<<1, 32>>>(map, make_int4(0, 2, 4, 0), make_int2(1, 0), out.device);
  CUDA(cudaGetLastError());
  out.down();
  int line = 4, w = 2;
  for (int pixel = 0; pixel < pixels; ++pixel) {
    for (int c = 0; c < loaded; ++c) {
      const int place = pixel * loaded + (c ^ (pixel / 4 % 2 * 4));
      CHECK(out[place] == value(line / high, line % high, w + 1, c));
    }
    if (++w < wide + 1) continue;
    w = -1;
    ++line;
  }
  return ok();
}
