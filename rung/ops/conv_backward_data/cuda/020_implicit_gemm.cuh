// SPDX-License-Identifier: Apache-2.0
// conv_backward_data / implicit GEMM: the kernels, compiled for some of the types per file.
//
// Idea, Changes, Cost and Limits stand in 020_implicit_gemm.cu, whose rung this is a part of.
#pragma once

#include "rung/ops/conv/shared/cuda/implicit.hpp"
#include "rung/ops/conv_backward_data/op/layer.hpp"

namespace rung::conv_cuda::inline RUNG_TARGET {

template <class T, class S>
struct PhasedTile {
  Strips<Accumulator<T>, S> strips;  // where gathered_tile() has them
  PhasePlace phase;
};

template <class T, class S, bool Phases>
__global__ void __launch_bounds__(block_threads)
    conv_backward_data_implicit_gemm(Gathered g, TermSlices slices) {
  if constexpr (Phases) {
    auto& place = shared<PhasedTile<T, S>>().phase;
    gathered_tile<T, S>(phase_of_block<T>(g, place, slices), slices);
  } else {
    gathered_tile<T, S>(g, slices);
  }
}

template <class T>
__global__ void __launch_bounds__(sum_threads)
    conv_backward_data_implicit_gemm_add_slices(Gathered g, const Accumulator<T>* sums,
                                                TermSlices slices) {
  finish_slices<T>(g, sums, slices);
}

template <class T, bool Phases>
void multiply_gathered(const Gathered& g, Context& context) {
  with_tile<T>(g, [&]<class S>() {
    const TermSlices slices = slices_of(g, tile_size(g));
    const LaunchShape shape = tile_grid<S>(
        g, slices, Phases ? sizeof(PhasedTile<T, S>) : sizeof(Strips<Accumulator<T>, S>));
    with_slices<T>(g, slices, context, conv_backward_data_implicit_gemm_add_slices<T>,
                   [&](const Gathered& layer) {
                     launch(context, shape, conv_backward_data_implicit_gemm<T, S, Phases>, layer,
                            slices);
                   });
  });
}

}  // namespace rung::conv_cuda::inline RUNG_TARGET
