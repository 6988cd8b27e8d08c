// SPDX-License-Identifier: Apache-2.0
// transfer / pageable copy
//
// Idea     three steps in sequence: copy x to the device, compute, copy y back, directly from and
//          to the caller's memory.
// Changes  baseline.
// Cost     each byte crosses the link once; the driver stages pageable memory through small
//          page-locked buffers of its own, on one core of the host.
// Limits   every valid call. Nothing overlaps: the link is idle while the device computes, and only
//          one of its directions is used at a time.
// Source   CUDA C++ Best Practices Guide, "Data transfer between host and device".
#include "rung/ops/transfer/cuda/detail/link.hpp"

namespace rung {
namespace {

using namespace transfer_cuda;

Work work(const Transfer::Args& args, const Context&) {
  // The driver stages pageable memory on one thread: a read, a write and a transfer.
  const auto turns = [](const void* memory) { return is_page_locked(memory) ? 1 : 3; };
  return turns_work(bytes_one_way(args) * (turns(args.x.data) + turns(args.y.data)), 3);
}

void run(const Transfer::Args& args, Context& context) {
  const std::int64_t count = args.y.size();
  if (count == 0) return;
  Lane& lane = context.memo<Lanes>().get(context, 0);
  const TensorRef there = lane.device_memory(args.y.dtype, count);
  const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(args.y.dtype));
  copy_async(lane.context(), there.data, args.x.data, bytes);
  elementwise(lane.context(), {.x = there}, there, {.function = args.function});
  copy_async(lane.context(), args.y.data, there.data, bytes);
  lane.context().synchronize();
}

const Rung<Transfer> self{
    {.name = "pageable_copy", .step = 10, .backend = device_backend, .work = work, .run = run}};

}  // namespace
}  // namespace rung
