// SPDX-License-Identifier: Apache-2.0
// What conv's CPU rungs share: how long a call takes.
#pragma once

#include "rung/core/context.hpp"
#include "rung/ops/conv/op/conv.hpp"
#include "rung/ops/conv/shared/cpu/pixels.hpp"
#include "rung/ops/conv/shared/gathered.hpp"

namespace rung::conv_cpu {

/// The kernels of direct_simd, padded_planes and padded_pixels, for this machine. The layer may be
/// that of a gradient. Each adds an element's terms in an order of its own.
void direct_on(const conv_layer::Gathered& layer, Context& context, int threads);
void planes_on(const conv_layer::Gathered& layer, Context& context, int threads);
void pixels_on(const conv_layer::Gathered& layer, Context& context, int threads);
/// The one of them that a way names.
void layer_on(Way way, const conv_layer::Gathered& layer, Context& context, int threads);

/// depthwise's kernel for a layer that has_channel_vectors().
void channel_vectors_on(const conv_layer::Gathered& layer, Context& context, int threads);

/// What direct_simd takes on so many threads.
double seconds(const Conv::Args& args, int threads);

/// Whether Winograd's filtering takes a call, and how long tiles of so many pixels then take.
Support takes_winograd(const Conv::Args& args, const Context& context);
double winograd_seconds(const Conv::Args& args, int tile, int threads);

}  // namespace rung::conv_cpu
