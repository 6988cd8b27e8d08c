// SPDX-License-Identifier: Apache-2.0
// transfer / pinned copy
//
// Idea     the copy engine accesses page-locked ("pinned") memory directly, at the link's full
//          bandwidth. Memory that the caller has page-locked is used in place; other memory is
//          staged by the host through page-locked buffers.
// Changes  against pageable_copy: no staging by the driver through small buffers on one core;
//          pageable memory is staged by all cores instead.
// Cost     each byte crosses the link once; pageable memory takes two more copies within the host.
// Limits   every valid call; holds page-locked memory as large as the data. Nothing overlaps.
//          Page-locking the caller's memory for one call (cudaHostRegister) is left to the caller:
//          it visits every page twice and pays only for memory that is reused many times.
// Source   CUDA C++ Best Practices Guide, "Pinned memory".
#include "rung/ops/transfer/cuda/detail/link.hpp"

namespace rung {
namespace {

using namespace transfer_cuda;

Work work(const Transfer::Args& args, const Context&) {
  // Host threads divide the copies to and from buffers; each copy is a read and a write.
  const double threads = Context::cpu().threads();
  const int staged = !is_page_locked(args.x.data) + !is_page_locked(args.y.data);
  return turns_work(bytes_one_way(args) * (2 + staged * 2 / threads), 3 + staged);
}

void run(const Transfer::Args& args, Context& context) {
  const std::int64_t count = args.y.size();
  if (count == 0) return;
  Lanes& lanes = context.memo<Lanes>();
  Lane& lane = lanes.get(context, 0);
  const TensorRef there = lane.device_memory(args.y.dtype, count);
  const std::int64_t bytes = count * static_cast<std::int64_t>(size_of(args.y.dtype));
  const void* from = args.x.data;
  if (!is_page_locked(from)) {
    const HostCopy fill{lane.in.reserve(bytes), from, bytes, true};
    copy_on_host({&fill, 1}, lanes.host_threads);
    from = fill.to;
  }
  const bool direct = is_page_locked(args.y.data);
  void* to = direct ? args.y.data : lane.out.reserve(bytes);
  copy_async(lane.context(), there.data, from, bytes);
  elementwise(lane.context(), {.x = there}, there, {.function = args.function});
  copy_async(lane.context(), to, there.data, bytes);
  lane.context().synchronize();
  if (!direct) {
    const HostCopy empty{args.y.data, to, bytes, true};
    copy_on_host({&empty, 1}, lanes.host_threads);
  }
}

const Rung<Transfer> self{{.name = "pinned_copy",
                           .step = 20,
                           .after = "pageable_copy",
                           .backend = device_backend,
                           .work = work,
                           .run = run}};

}  // namespace
}  // namespace rung
