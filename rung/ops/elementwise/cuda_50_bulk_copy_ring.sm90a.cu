// SPDX-License-Identifier: Apache-2.0
// elementwise / bulk copy ring
//
// Idea     the copy engine fetches: one thread asks for tiles of 8 KiB an operand, four ahead, into
//          a ring in shared memory; the block computes on the tile that has landed, writes its
//          results straight to global memory by 16 bytes, and hands the slot back.
// Changes  against vectorised_16b: what is under way no longer lives in registers - a block keeps
//          32 KiB an operand on the road, whatever its function needs of them - and no thread
//          computes addresses of loads. As many blocks as fit stay until all tiles are done.
// Cost     every operand once, the result once; each operand passes through shared memory.
// Limits   f32 and f64, contiguous, 16-byte aligned with each other. Smaller types with several
//          operands have too many elements a byte for the detour to pay, so they are left to
//          vectorised_16b. Needs compute capability 9.0.
// Source   CUB's transform for sm_90; PTX ISA, "cp.async.bulk". Not measured on a GPU yet.
#include "rung/device/ptx_bulk_copy.hpp"
#include "rung/device/resident.hpp"
#include "rung/ops/elementwise/cuda_vectorised.hpp"

namespace rung {
namespace {

using namespace elementwise_cuda;

struct Tuning {
  int tile_bytes;  // of an operand: enough that the cost of starting a copy vanishes
  int stages;      // tiles of each operand under way
};
constexpr Tuning tuning{.tile_bytes = 8192, .stages = 4};

template <int Inputs>
struct Ring {
  alignas(128) unsigned char tile[tuning.stages][Inputs][tuning.tile_bytes];
  ptx::MemoryBarrier full[tuning.stages];
};

template <class T>
constexpr int tile_elements = tuning.tile_bytes / static_cast<int>(sizeof(typename T::Out));

/// One pack of results from the tile in shared memory.
template <class T, class F, int... I>
__device__ __forceinline__ void compute_pack(const F& f,
                                             unsigned char (&tile)[T::inputs][tuning.tile_bytes],
                                             int first, typename T::Out* to,
                                             std::integer_sequence<int, I...> indices) {
  constexpr int wide = pack_elements<T>;
  using Element = typename T::Out;
  typename PacksOf<wide, T>::Type packs;
  ((packs.template get<I>() = load_wide<wide>(reinterpret_cast<const Element*>(tile[I]) + first)),
   ...);
  Pack<Element, wide> result;
#pragma unroll
  for (int lane = 0; lane < wide; ++lane) result[lane] = apply_lane<T>(f, packs, lane, indices);
  store_wide(to, result);
}

template <class Map, class T>
__global__ void __launch_bounds__(block_threads)
    elementwise_bulk_copy_ring(Map map, T tensors, std::int64_t head, std::int64_t tiles) {
  using Element = typename T::Out;
  constexpr int elements = tile_elements<T>;
  constexpr int wide = pack_elements<T>;
  auto& ring = shared<Ring<T::inputs>>();
  const std::int64_t first = blockIdx.x;
  const std::int64_t step = gridDim.x;
  const auto request = [&](std::int64_t tile, int stage) {
    if (tile >= tiles) return;
    ptx::mbarrier_arrive_expect(ring.full[stage], T::inputs * tuning.tile_bytes);
#pragma unroll
    for (int i = 0; i < T::inputs; ++i) {
      ptx::bulk_load(ring.tile[stage][i],
                     static_cast<const Element*>(tensors.in[i]) + head + tile * elements,
                     tuning.tile_bytes, ring.full[stage]);
    }
  };
  if (threadIdx.x == 0) {
    for (ptx::MemoryBarrier& full : ring.full) ptx::mbarrier_init(full, 1);
    ptx::mbarrier_fence_init();
    for (int stage = 0; stage < tuning.stages; ++stage) request(first + stage * step, stage);
  }
  __syncthreads();
  map.with([&](const auto& f) {
    int stage = 0;
    unsigned parity = 0;
#pragma unroll 1
    for (std::int64_t tile = first; tile < tiles; tile += step) {
      ptx::mbarrier_wait(ring.full[stage], parity);
      Element* to = tensors.out + head + tile * elements;
#pragma unroll 1
      for (int at = static_cast<int>(threadIdx.x) * wide; at < elements;
           at += block_threads * wide) {
        compute_pack<T>(f, ring.tile[stage], at, to + at, typename T::Indices{});
      }
      __syncthreads();  // nobody reads the slot any more
      if (threadIdx.x == 0) request(tile + tuning.stages * step, stage);
      if (++stage == tuning.stages) stage = 0, parity ^= 1;
    }
    // What lies before the first whole pack and behind the last whole tile.
    const std::int64_t behind = head + tiles * elements;
    const std::int64_t thread = first * block_threads + threadIdx.x;
    if (thread < head) compute_flat(tensors, f, thread);
#pragma unroll 1
    for (std::int64_t i = behind + thread; i < tensors.layout.size(); i += step * block_threads) {
      compute_flat(tensors, f, i);
    }
  });
}

Support supports(const Elementwise::Args& args, const Context& context) {
  if (context.info().compute_capability < 90) return unsupported("needs compute capability 9.0");
  if (args.z.dtype != DType::f32 && args.z.dtype != DType::f64) {
    return unsupported("takes f32 and f64");
  }
  if (!args.flat()) {
    return unsupported("takes contiguous tensors of one order, without broadcasting");
  }
  bool fits = false;
  with_tensors<float, double>(args, [&]<class Map, class T>(const Map&, const T& tensors) {
    const auto packing = pack(tensors);
    fits = packing && tensors.size() - packing->head >= tile_elements<T>;
  });
  return fits ? supported : unsupported("takes a tile of 8 KiB that lies aligned in every tensor");
}

double estimate(const Elementwise::Args& args, const Context& context) {
  // The ring costs a few microseconds to fill and drain: below some MiB vectorised_16b is ahead.
  return 2e-6 + seconds(args, context, 0.97);
}

void run(const Elementwise::Args& args, Context& context) {
  with_tensors<float, double>(args, [&]<class Map, class T>(const Map& map, const T& tensors) {
    const auto kernel = elementwise_bulk_copy_ring<Map, T>;
    constexpr std::size_t bytes = sizeof(Ring<T::inputs>);
    const std::int64_t head = pack(tensors)->head;
    const std::int64_t tiles = (tensors.size() - head) / tile_elements<T>;
    const std::int64_t blocks =
        std::min(tiles, resident_blocks(context, kernel, block_threads, bytes));
    launch(context, {.grid = blocks, .block = block_threads, .shared_bytes = bytes}, kernel, map,
           tensors, head, tiles);
  });
}

const Rung<Elementwise> self{{.name = "bulk_copy_ring",
                              .step = 50,
                              .after = "vectorised_16b",
                              .backend = device_backend,
                              .supports = supports,
                              .estimate = estimate,
                              .run = run}};

}  // namespace
}  // namespace rung
