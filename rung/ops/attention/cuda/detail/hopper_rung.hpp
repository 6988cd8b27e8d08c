// SPDX-License-Identifier: Apache-2.0
// The host side of the rungs on TMA and wgmma.
#pragma once

#include "rung/ops/attention/cuda/detail/hopper_job.hpp"
#include "rung/ops/attention/cuda/detail/tensor_rung.hpp"

namespace rung::attention_cuda::inline RUNG_TARGET {

/// Of the map of O: what a warp stores.
constexpr int o_box[4] = {1, 1, warp_rows, 64};

inline Support require_hopper(const Attention::Args& args, const Context& context, int rows) {
  if (const Support tensor = require_tensor_cores(args, rows); !tensor) return tensor;
  if (context.info().compute_capability < 90) {
    return unsupported("wgmma and TMA need compute capability 9.0");
  }
  // A store writes the 16-byte piece in which a row ends.
  if (args.value_width() % 8 != 0) return unsupported("Dv is no multiple of 8");
  return visit<f16, bf16>(args.q.dtype, [&]<class T>() {
    for (const auto& operand : {args.q, args.k, args.v, ConstTensorRef(args.o)}) {
      const Support map =
          tensor_map_support(operand.template view<const T, 4>(), o_box, Swizzle::bytes_128);
      if (!map) return map;
    }
    return supported;
  });
}

/// TileQ and TileK are the kernel's; its maps depend on them.
template <class T, class TileQ, class TileK>
HopperJob<T> hopper_job(const Attention::Args& args, const Context& context, int rows) {
  HopperJob<T> job{query_job<T>(args, context, rows), {}, {}, {}, {}};
  job.q = TileQ::map(job.heads.q);
  job.k = TileK::map(job.heads.k);
  job.v = TileK::map(job.heads.v);
  job.o = make_tensor_map(job.heads.o, o_box, Swizzle::bytes_128);
  return job;
}

}  // namespace rung::attention_cuda::inline RUNG_TARGET
