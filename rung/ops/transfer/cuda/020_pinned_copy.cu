// SPDX-License-Identifier: Apache-2.0
// transfer / pinned copy
//
// Idea     the copy engine reads and writes page-locked ("pinned") memory by itself, at the link's
//          full rate. Memory that the caller has page-locked is used as it is; other memory is
//          copied by the host to a page-locked buffer before, and from one afterwards.
// Changes  against pageable_copy: the driver's detour through small buffers, by one core, is gone -
//          or made by us, by all cores, if the caller's memory is pageable.
// Cost     each byte crosses the link once; of pageable memory, two copies within the host.
// Limits   every valid call; holds page-locked memory as large as the data. Still nothing overlaps.
//          Page-locking the caller's memory for the call alone (cudaHostRegister) is left to the
//          caller: it walks every page both ways and pays only for memory that is used many times.
// Source   CUDA C++ Best Practices Guide, "Pinned memory".
#include "rung/ops/transfer/cuda/detail/link.hpp"

namespace rung {
namespace {

using namespace transfer_cuda;

Work work(const Transfer::Args& args, const Context&) {
  // Threads of the host share the copies to and from buffers: a read and a write each.
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
