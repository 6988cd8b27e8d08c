// SPDX-License-Identifier: Apache-2.0
// Causes of stalls that Nsight Compute does not count. `rung explain` derives a lower bound on the
// run time from them. Part of simt/record.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rung::simt::record {

/// Histogram of requests by their number of sectors or wavefronts.
struct Distribution {
  static constexpr std::size_t most = 128;  // last bin: `most` or more
  std::array<std::uint64_t, most + 1> requests{};

  void add(std::uint32_t number) { ++requests[number < most ? number : most]; }
  Distribution& operator+=(const Distribution& other) {
    for (std::size_t i = 0; i <= most; ++i) requests[i] += other.requests[i];
    return *this;
  }
};

/// Numbers of latencies that a warp incurs one after another, by kind. A warp is assumed to wait
/// for its loads before a warp operation or a barrier: loads between two such points overlap, and
/// the slowest one counts. Stores do not separate loads, since compilers move loads above stores to
/// other memory.
struct Trips {
  std::uint64_t memory = 0;  // loads of sectors that the launch loads for the first time
  std::uint64_t cache = 0;   // other loads from global memory
  std::uint64_t shared = 0;
  std::uint64_t barriers = 0;
  std::uint64_t exchanges = 0;  // shuffles, votes and other warp-wide operations

  [[nodiscard]] std::uint64_t all() const { return memory + cache + shared + barriers + exchanges; }
  Trips& operator+=(const Trips& other) {
    memory += other.memory;
    cache += other.cache;
    shared += other.shared;
    barriers += other.barriers;
    exchanges += other.exchanges;
    return *this;
  }
};

struct Waits {
  // 128-byte lines accessed by requests to global memory. L1 processes one per cycle.
  std::uint64_t lines = 0;
  // Wavefronts of shared loads if adjacent loads of each lane are merged into loads of up to 16
  // bytes, as nvcc does in unrolled loops.
  std::uint64_t merged_load_wavefronts = 0;
  // Requests that are not separate instructions: merged loads, and the second of the two requests
  // (load and store) of a cp.async.
  std::uint64_t merged_requests = 0;
  Distribution load_sectors, shared_load_wavefronts;
  Trips longest;  // of the warp with the most latencies in each block, summed over blocks

  Waits& operator+=(const Waits& other) {
    lines += other.lines;
    merged_load_wavefronts += other.merged_load_wavefronts;
    merged_requests += other.merged_requests;
    load_sectors += other.load_sectors;
    shared_load_wavefronts += other.shared_load_wavefronts;
    longest += other.longest;
    return *this;
  }
};

/// Stall model of one warp; processes its requests in order. Internal to simt/.
class WarpWaits {
 public:
  enum class Load : std::uint8_t { none, shared, cached, memory };

  void load(Load kind) {
    before_ = pending_;
    if (pending_ < kind) pending_ = kind;
  }
  /// Cancels the preceding load, which belongs to a cp.async: the warp does not wait for it.
  void was_asynchronous() { pending_ = before_; }
  void settle() {
    trips_.memory += pending_ == Load::memory ? 1 : 0;
    trips_.cache += pending_ == Load::cached ? 1 : 0;
    trips_.shared += pending_ == Load::shared ? 1 : 0;
    pending_ = before_ = Load::none;
  }
  void barrier() {
    settle();
    ++trips_.barriers;
  }
  void exchange() {
    settle();
    ++trips_.exchanges;
  }
  [[nodiscard]] const Trips& so_far() const { return trips_; }

 private:
  Trips trips_;
  Load pending_ = Load::none, before_ = Load::none;
};

}  // namespace rung::simt::record
