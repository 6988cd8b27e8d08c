// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / tensor cores
//
// Idea     The gradient as a convolution of dy by conv's tensor-core tiles, for f16 and bf16 with
//          channels last. For each tap, eight filters are 16 contiguous bytes of dy. w is
//          contiguous along the channels of dx, not along the filters that are summed over: its
//          strips are stored to shared memory with a row per term, and ldmatrix transposes them.
// Changes  Against implicit_gemm: 16-byte loads, each decoded once for 8 terms; 2048 multiply-adds
//          per instruction; half the bytes of f32.
// Cost     128 positions x 64 channels per block, 32 terms per step; a layer of stride s is split
//          into phases (positions modulo s), so that no inserted zeros are multiplied.
// Limits   Contiguous channels and filters, multiples of 8 per group, all 16-byte aligned. Tensor
//          cores truncate when they add: twice the error bound of f32.
// Source   PTX ISA, "Matrix load instruction: ldmatrix", .trans.
#include "rung/ops/conv/shared/cuda/tensor_tiles.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung {
namespace {

using namespace conv_cuda;

template <class T>
struct PhasedStrips {
  TensorStrips<T> strips;  // at offset 0, as the kernel expects
  PhasePlace phase;
};

/// Computes dx, one tile per block. Rows of the product are positions of dx, columns its channels.
/// blockIdx.x counts tiles of positions, blockIdx.y tiles of channels of all groups, blockIdx.z
/// slices of the terms, and phases.
template <class T, bool Phases>
__global__ void __launch_bounds__(block_threads)
    conv_backward_data_tensor_cores(Gathered layer, TermSlices slices) {
  const Gathered& g = phase_of_block<T, PhasedStrips<T>, Phases>(layer, slices);
  auto& memory = shared<TensorStrips<T>>();
  const int thread = static_cast<int>(threadIdx.x);
  const auto tiles = static_cast<unsigned>(ceil_div(g.m, tile_filters));
  const std::int64_t group = blockIdx.y / tiles;
  const std::int64_t first_filter = std::int64_t{blockIdx.y % tiles} * tile_filters;
  const std::int64_t first_pixel = std::int64_t{blockIdx.x} * tile_pixels;
  if (first_pixel >= g.pixels()) return;
  const T* const dy = static_cast<const T*>(g.x) + group * g.q * g.x_strides[1];
  const T* const w = static_cast<const T*>(g.w) + group * g.w_group + first_filter * g.w_strides[0];

  // Four adjacent threads copy 64 bytes per step of a pixel.
  const int row = thread / chunks;
  const int column = thread % chunks * chunk;
  constexpr int rows_apart = block_threads / chunks;
  GatheredPixel pixel[pixel_slots];
#pragma unroll
  for (int slot = 0; slot < pixel_slots; ++slot) {
    pixel[slot] = gathered_pixel(g, first_pixel + row + slot * rows_apart);
  }
  // Eight threads copy 128 bytes of w: all channels of a term.
  const int term_row = thread / (tile_filters / chunk);
  const int term_column = thread % (tile_filters / chunk) * chunk;
  const bool has_channels = first_filter + term_column < g.m;
  const TermRange terms = terms_of_block(slices, g.terms(), tile_terms);
  const std::int64_t first_chunk = terms.begin / chunk;
  const std::int64_t all_chunks = terms.end / chunk;
  // Held in registers: in shared memory the layer would be loaded again for each chunk.
  const auto depth = static_cast<unsigned>(g.axis[0].extent);
  const auto height = static_cast<unsigned>(g.axis[1].extent);
  const auto width = static_cast<unsigned>(g.axis[2].extent);
  const std::int64_t w_term = g.w_strides[1];

  const auto decode = [&](std::int64_t first) {  // 256 chunks of eight terms, one per thread
    memory.table[thread] = gathered_term<true, chunk>(g, first + thread, all_chunks);
    __syncthreads();
  };
  // Chunks of a step, held in registers while the previous step is multiplied.
  Eight<T> of_dy[pixel_slots] = {};
  Eight<T> of_w = {};
  const auto load = [&](int first) {
    // The implicit matrix: dy if the chunk's tap of the pixel is inside the image, else zeros.
    const Entry term = memory.table[first + column / chunk];
#pragma unroll
    for (int slot = 0; slot < pixel_slots; ++slot) {
      const int d = pixel[slot].d + term.d;
      const int h = pixel[slot].h + term.h;
      const int v = pixel[slot].v + term.v;
      const bool inside = static_cast<unsigned>(d) < depth && static_cast<unsigned>(h) < height &&
                          static_cast<unsigned>(v) < width;
      of_dy[slot] = inside ? load_raw<chunk>(dy + pixel[slot].base + term.image) : eight_zeros<T>();
    }
    const Entry& of_row = memory.table[first + term_row / chunk];
    of_w = has_channels && of_row.other >= 0
               ? load_raw<chunk>(w + of_row.other + term_row % chunk * w_term + term_column)
               : eight_zeros<T>();
  };

  float sums[pixel_fragments][filter_fragments][4] = {};
  if (first_chunk < all_chunks) {
    decode(first_chunk);
    load(0);
  }
  int stage = 0;
  for (std::int64_t k = first_chunk; k < all_chunks; k += chunks, stage ^= 1) {
    Stage<T>& here = memory.stage[stage];
#pragma unroll
    for (int slot = 0; slot < pixel_slots; ++slot) {
      store_raw(&here.pixels[row + slot * rows_apart][column], of_dy[slot]);
    }
    store_raw(&here.turned[term_row][term_column], of_w);
    __syncthreads();  // one per step: the next step uses the other stage
    const std::int64_t next = k + chunks;
    if (next < all_chunks) {
      const int at = static_cast<int>((next - first_chunk) % table_entries);
      if (at == 0) decode(next);
      load(at);
    }
    const MmaPlace warp;  // recomputed: saves registers while loads are in flight
#pragma unroll
    for (int step = 0; step < tile_terms; step += 16) {
      std::uint32_t a[pixel_fragments][4];
      std::uint32_t b[filter_fragments][2];
#pragma unroll
      for (int i = 0; i < pixel_fragments; ++i) {
        const int at = warp.first_pixel + i * 16 + warp.lane % 16;
        ptx::load_matrix(a[i], &here.pixels[at][step + warp.lane / 16 * 8]);
      }
#pragma unroll
      for (int j = 0; j < filter_fragments; ++j) {
        const int filter = warp.first_filter + j * 8;
        ptx::load_matrix<2, true>(b[j], &here.turned[step + warp.lane % 16][filter]);
      }
#pragma unroll
      for (int i = 0; i < pixel_fragments; ++i) {
#pragma unroll
        for (int j = 0; j < filter_fragments; ++j) ptx::mma<T>(sums[i][j], a[i], b[j]);
      }
    }
  }

  const MmaPlace warp;
  const LayerEpilogue<T> epilogue(g, slices, group);
#pragma unroll
  for (int i = 0; i < pixel_fragments; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t index = first_pixel + warp.pixel(i, half);
      if (index >= g.pixels()) continue;
      const std::int64_t place = epilogue.place(index);
#pragma unroll
      for (int j = 0; j < filter_fragments; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          epilogue.store(place, first_filter + warp.filter(j, e), sums[i][j][2 * half + e]);
        }
      }
    }
  }
}

template <class T>
__global__ void __launch_bounds__(sum_threads)
    conv_backward_data_tensor_cores_add_slices(Gathered g, const Accumulator<T>* sums,
                                               TermSlices slices) {
  finish_slices<T>(g, sums, slices);
}

Support supports(const ConvBackwardData::Args& args, const Context&) {
  if (size_of(args.dx.dtype) != 2) return unsupported("f16 and bf16");
  const ConvGeometry& g = args.geometry;
  const bool wide = g.group_filters() >= chunk && g.group_channels() >= chunk;
  if (!wide || !in_eights(args.dy, g.group_filters()) || !in_eights(args.w, g.group_channels())) {
    return unsupported("contiguous channels and filters, in multiples of 8, aligned to 16 bytes");
  }
  return supports_tensor_tiles(conv_layer::transposed(args));
}

Work work(const ConvBackwardData::Args& args, const Context&) {
  return tensor_facts(conv_layer::transposed(args), ConvBackwardData::cost(args),
                      conv_layer::terms_in_a_row(args));
}

void run(const ConvBackwardData::Args& args, Context& context) {
  const Gathered g = conv_layer::transposed(args);
  const TermSlices slices = tensor_slices(g);
  visit<f16, bf16>(args.dx.dtype, [&]<class T>() {
    LaunchShape shape = tensor_grid<T>(g, slices);
    if (is_divided(g)) shape.shared_bytes = sizeof(PhasedStrips<T>);
    const auto multiply = is_divided(g) ? conv_backward_data_tensor_cores<T, true>
                                        : conv_backward_data_tensor_cores<T, false>;
    with_slices<T>(g, slices, context, conv_backward_data_tensor_cores_add_slices<T>,
                   [&](const Gathered& layer) { launch(context, shape, multiply, layer, slices); });
  });
}

const Rung<ConvBackwardData> self{{.name = "tensor_cores",
                                   .step = 30,
                                   .after = "implicit_gemm",
                                   .backend = device_backend,
                                   .supports = supports,
                                   .work = work,
                                   .run = run}};

}  // namespace
}  // namespace rung
