// SPDX-License-Identifier: Apache-2.0
// transfer / chunked streams
//
// Idea     the data are divided into chunks; the copy in, computation and copy out of a chunk are
//          enqueued on one of several streams. Steps on one stream are ordered; steps on different
//          streams overlap: while one chunk computes, the next is copied in and the previous out,
//          which uses the device and both directions of the link at once.
// Changes  against pinned_copy: chunks and streams; page-locked memory for a few chunks instead of
//          all data. The host's staging of pageable memory overlaps too: its cores drain one chunk
//          and fill the next while the device has the others. Chunks stay in the host's last-level
//          cache between staging and transfer.
// Cost     each byte crosses the link once; the time is that of the slowest stage (copy in,
//          compute, copy out, the host's staging), plus filling and draining the pipeline.
// Limits   every valid call; small ones are one chunk, and gain nothing. In the simulator streams
//          are immediate: checks there show only that no chunk is lost, duplicated or overwritten.
// Source   CUDA C++ Best Practices Guide, "Concurrent copy and execute".

#include "rung/core/bounds.hpp"
#include "rung/core/integer.hpp"
#include "rung/ops/transfer/cuda/detail/link.hpp"

namespace rung {
namespace {

using namespace transfer_cuda;

struct Tuning {
  std::int64_t max_bytes;  // per chunk
  std::int64_t min_bytes;  // long enough to amortize the 10 us of starting a copy
  std::size_t lanes;       // chunks in flight
};
constexpr Tuning tuning{
    .max_bytes = std::int64_t{8} << 20, .min_bytes = std::int64_t{512} << 10, .lanes = 8};

/// Returns the chunk size that gives one chunk per lane, within limits.
std::int64_t chunk_bytes(std::int64_t bytes) {
  const std::int64_t share = ceil_div(bytes, static_cast<std::int64_t>(tuning.lanes));
  return clamped(round_up(share, 4096), tuning.min_bytes, tuning.max_bytes);
}

/// Elements that a lane is processing.
struct Chunk {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

Work work(const Transfer::Args& args, const Context&) {
  // Transfers in either direction and the host's copies overlap, except for the first and last
  // chunk.
  const double bytes = bytes_one_way(args);
  const auto chunk = static_cast<double>(chunk_bytes(static_cast<std::int64_t>(bytes)));
  const double threads = Context::cpu().threads();
  const int staged = !is_page_locked(args.x.data) + !is_page_locked(args.y.data);
  return turns_work(bytes * larger(1.0, staged * 2 / threads) + 2 * smaller(bytes, chunk),
                    6 + staged);
}

void run(const Transfer::Args& args, Context& context) {
  const std::int64_t total = args.y.size();
  const auto size = static_cast<std::int64_t>(size_of(args.y.dtype));
  const std::int64_t chunk = smaller(chunk_bytes(total * size) / size, total);
  const bool read_direct = is_page_locked(args.x.data);
  const bool write_direct = is_page_locked(args.y.data);
  Lanes& lanes = context.memo<Lanes>();
  Chunk at_work[tuning.lanes];
  if (total == 0) return;

  // Each iteration finishes a lane's chunk and starts its next one.
  const std::int64_t chunks = ceil_div(total, chunk);
  for (std::int64_t turn = 0; turn < chunks + static_cast<std::int64_t>(tuning.lanes); ++turn) {
    const std::size_t index = static_cast<std::size_t>(turn) % tuning.lanes;
    const Chunk done = at_work[index];
    Chunk next;
    if (turn < chunks) next = {turn * chunk, smaller(chunk, total - turn * chunk)};
    if (done.count == 0 && next.count == 0) continue;
    Lane& lane = lanes.get(context, index);
    if (done.count > 0) lane.context().synchronize();

    HostCopy copies[2];
    std::size_t copied = 0;
    if (done.count > 0 && !write_direct) {
      copies[copied++] = {at(args.y, done.first), lane.out.reserve(chunk * size), done.count * size,
                          true};
    }
    if (next.count > 0 && !read_direct) {
      copies[copied++] = {lane.in.reserve(chunk * size), at(args.x, next.first), next.count * size};
    }
    copy_on_host({copies, copied}, lanes.host_threads);

    at_work[index] = next;
    if (next.count == 0) continue;
    const TensorRef memory = lane.device_memory(args.y.dtype, chunk);
    const TensorRef there(memory.data, memory.dtype, Extents{next.count}, memory.device);
    const std::int64_t bytes = next.count * size;
    const void* from = read_direct ? at(args.x, next.first) : lane.in.reserve(chunk * size);
    void* to = write_direct ? at(args.y, next.first) : lane.out.reserve(chunk * size);
    copy_async(lane.context(), there.data, from, bytes);
    elementwise(lane.context(), {.x = there}, there, {.function = args.function});
    copy_async(lane.context(), to, there.data, bytes);
  }
}

const Rung<Transfer> self{{.name = "chunked_streams",
                           .step = 30,
                           .after = "pinned_copy",
                           .backend = device_backend,
                           .work = work,
                           .run = run}};

}  // namespace
}  // namespace rung
