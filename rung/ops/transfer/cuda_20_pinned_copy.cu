// SPDX-License-Identifier: Apache-2.0
// transfer / pinned copy
//
// Idea     the copy engine reads and writes page-locked ("pinned") memory by itself, at the link's
//          full rate. Memory that the caller has page-locked is used as it is; other memory is
//          copied by the host to a page-locked buffer before, and from one afterwards.
// Changes  against pageable_copy: the driver's detour through small buffers is gone - or made by
//          us, whole, if the caller's memory is pageable.
// Cost     each byte crosses the link once; of pageable memory, two copies within the host.
// Limits   every valid call; holds page-locked memory as large as the data. Still nothing overlaps.
//          Page-locking the caller's memory for the call alone (cudaHostRegister) is left to the
//          caller: it walks every page both ways and pays only for memory that is used many times.
// Source   CUDA C++ Best Practices Guide, "Pinned memory".
#include "rung/ops/transfer/cuda_link.hpp"

namespace rung {
namespace {

using namespace transfer_cuda;

double estimate(const Transfer::Args& args, const Context&) {
  // One core copies about 10 GB/s from and to memory.
  const bool staged = !is_page_locked(args.x.data) || !is_page_locked(args.y.data);
  return 30e-6 +
         bytes_one_way(args) * 2 * (1 / (0.9 * link_bytes_per_second) + (staged ? 1 / 10e9 : 0.0));
}

void run(const Transfer::Args& args, Context& context) {
  const std::int64_t count = args.y.size();
  if (count == 0) return;
  Lane& lane = context.memo<Lanes>().get(context, 0);
  const TensorRef there = lane.device_memory(args.y.dtype, count);
  const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(args.y.dtype));
  const void* from = args.x.data;
  if (!is_page_locked(from)) {
    from = std::memcpy(lane.in.reserve(bytes), from, static_cast<std::size_t>(bytes));
  }
  const bool direct = is_page_locked(args.y.data);
  void* to = direct ? args.y.data : lane.out.reserve(bytes);
  copy_async(lane.context(), there.data, from, bytes);
  elementwise(lane.context(), {.x = there}, there, {.function = args.function});
  copy_async(lane.context(), to, there.data, bytes);
  lane.context().synchronize();
  if (!direct) std::memcpy(args.y.data, to, static_cast<std::size_t>(bytes));
}

const Rung<Transfer> self{{.name = "pinned_copy",
                           .step = 20,
                           .after = "pageable_copy",
                           .backend = device_backend,
                           .estimate = estimate,
                           .run = run}};

}  // namespace
}  // namespace rung
