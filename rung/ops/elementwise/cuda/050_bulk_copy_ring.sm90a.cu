// SPDX-License-Identifier: Apache-2.0
// elementwise / bulk copy ring
//
// Idea     one thread issues bulk copies of a block's whole input, tiles of 4 KiB per operand, to
//          shared memory; the block waits for their arrival and stores its results to global
//          memory, 16 bytes at a time.
// Changes  against vectorized_16b: data in flight occupies no registers, however many the function
//          needs, and no thread computes load addresses.
// Cost     loads every operand once through shared memory, stores the result once.
// Limits   f32 and f64, and f16 and bf16 with one operand; contiguous, with equal alignment modulo
//          16 bytes. Requires compute capability 9.0.
// Care     a stage may be refilled only after the values read from it have been used: a block
//          barrier does not wait for loads queued behind stores. In this rung each stage is used
//          once.
// Source   CUB's transform for sm_90; PTX ISA, "cp.async.bulk".
#include "rung/device/dependent.hpp"
#include "rung/device/ptx/bulk_copy.hpp"
#include "rung/ops/elementwise/cuda/detail/packs.hpp"

namespace rung {
namespace {

using namespace elementwise_cuda;

struct Tuning {
  int threads;     // small blocks retire sooner
  int tile_bytes;  // per operand
  int stages;      // tiles of each operand per block
};
constexpr Tuning tuning{.threads = 128, .tile_bytes = 4096, .stages = 1};
constexpr int threads = tuning.threads;

template <int Inputs>
struct Ring {
  alignas(128) unsigned char tile[tuning.stages][Inputs][tuning.tile_bytes];
  ptx::MemoryBarrier full[tuning.stages];
};

template <class T>
constexpr int tile_elements = tuning.tile_bytes / static_cast<int>(sizeof(typename T::Out));

/// Computes one pack of results from the tile in shared memory.
template <class T, class F, int... I>
__device__ __forceinline__ void compute_pack(const F& f,
                                             unsigned char (&tile)[T::inputs][tuning.tile_bytes],
                                             int first, typename T::Out* to,
                                             std::integer_sequence<int, I...> indices) {
  constexpr int wide = pack_elements<T>;
  using Element = typename T::Out;
  typename PacksOf<wide, T>::Type packs;
  ((packs.template get<I>() = load_raw<wide>(reinterpret_cast<const Element*>(tile[I]) + first)),
   ...);
  store_wide(to, apply_pack<T>(f, packs, indices));
}

template <class F, class T>
__global__ void __launch_bounds__(threads)
    elementwise_bulk_copy_ring(F f, T tensors, std::int64_t head, std::int64_t tiles) {
  using Element = typename T::Out;
  constexpr int elements = tile_elements<T>;
  constexpr int wide = pack_elements<T>;
  auto& ring = shared<Ring<T::inputs>>();
  const std::int64_t first = std::int64_t{blockIdx.x} * tuning.stages;
  if (threadIdx.x == 0) {
    for (ptx::MemoryBarrier& full : ring.full) ptx::mbarrier_init(full, 1);
    ptx::mbarrier_fence_init();
  }
  __syncthreads();
  start_dependent();
  if (threadIdx.x == 0) {
#pragma unroll
    for (int stage = 0; stage < tuning.stages; ++stage) {
      if (first + stage >= tiles) break;
      ptx::mbarrier_arrive_expect(ring.full[stage], T::inputs * tuning.tile_bytes);
#pragma unroll
      for (int i = 0; i < T::inputs; ++i) {
        ptx::bulk_load(
            ring.tile[stage][i],
            static_cast<const Element*>(tensors.in[i]) + head + (first + stage) * elements,
            tuning.tile_bytes, ring.full[stage]);
      }
    }
  }
#pragma unroll
  for (int stage = 0; stage < tuning.stages; ++stage) {
    if (first + stage >= tiles) break;
    ptx::mbarrier_wait(ring.full[stage], 0);
    Element* const to = tensors.out + head + (first + stage) * elements;
    const int mine = static_cast<int>(threadIdx.x) * wide;
#pragma unroll
    for (int at = 0; at < elements; at += threads * wide) {
      compute_pack<T>(f, ring.tile[stage], at + mine, to + at + mine, typename T::Indices{});
    }
  }
  // The last block computes the elements before the first whole pack and after the last whole tile:
  // less than a tile and a pack.
  if (blockIdx.x + 1 < gridDim.x) return;
  if (threadIdx.x < head) compute_flat(tensors, f, threadIdx.x);
#pragma unroll 1
  for (std::int64_t i = head + tiles * elements + threadIdx.x; i < tensors.layout.size();
       i += threads) {
    compute_flat(tensors, f, i);
  }
}

/// True for types and functions that have a kernel. Small elements of several operands are left
/// out: vectorized_16b reaches memory bandwidth for them.
template <class T>
constexpr bool has_kernel = sizeof(typename T::Out) > 2 || T::inputs == 1;

Support supports(const Elementwise::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("needs compute capability 9.0");
  if (!is_floating(args.z.dtype)) return unsupported("takes floating-point types");
  if (!args.flat()) {
    return unsupported("takes contiguous tensors of one order, without broadcasting");
  }
  bool fits = false;
  bool there = true;
  with_tensors<float, double, f16, bf16>(args, [&]<class T>(const T& tensors) {
    const auto packing = pack(tensors);
    fits = packing && tensors.size() - packing->head >= tile_elements<T>;
    there = has_kernel<T>;
  });
  if (!there) return unsupported("takes f16 and bf16 with one operand");
  return fits ? supported : unsupported("needs 4 KiB tiles that are aligned in every tensor");
}

void run(const Elementwise::Args& args, Context& context) {
  with_call<float, double, f16, bf16>(args, [&]<class F, class T>(const F& f, const T& tensors) {
    if constexpr (has_kernel<T>) {
      const std::int64_t head = pack(tensors)->head;
      const std::int64_t tiles = (tensors.size() - head) / tile_elements<T>;
      launch(context,
             {.grid = blocks_for(tiles, tuning.stages),
              .block = threads,
              .shared_bytes = sizeof(Ring<T::inputs>),
              .dependent = can_depend(context)},
             elementwise_bulk_copy_ring<F, T>, f, tensors, head, tiles);
    }
  });
}

const Rung<Elementwise> self{{.name = "bulk_copy_ring",
                              .step = 50,
                              .after = "vectorized_16b",
                              .backend = device_backend,
                              .supports = supports,
                              .passes = {.loads = 1, .stores = 1},
                              .work = memory_work,
                              .run = run}};

}  // namespace
}  // namespace rung
