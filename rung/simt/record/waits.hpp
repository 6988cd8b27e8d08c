// SPDX-License-Identifier: Apache-2.0
// What keeps a launch waiting, beyond what Nsight Compute counts: from it `rung explain` bounds the
// time from below. Part of rung/simt/record.hpp.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace rung::simt::record {

/// Requests by the number of sectors, or of wavefronts, that each of them takes.
struct Distribution {
  static constexpr std::size_t most = 128;  // or more
  std::array<std::uint64_t, most + 1> requests{};

  void add(std::uint32_t number) { ++requests[number < most ? number : most]; }
  Distribution& operator+=(const Distribution& other) {
    for (std::size_t i = 0; i <= most; ++i) requests[i] += other.requests[i];
    return *this;
  }
};

/// Latencies that follow each other in a warp. It waits for its loads before it meets other lanes
/// or reaches a barrier: loads between two of those overlap, and the slowest counts. Stores do not
/// separate loads: compilers move a load above a store to other memory.
struct Trips {
  std::uint64_t memory = 0;  // loads of a sector that is loaded for the first time in the launch
  std::uint64_t cache = 0;   // other loads from global memory
  std::uint64_t shared = 0;
  std::uint64_t barriers = 0;
  std::uint64_t exchanges = 0;  // shuffles, votes and other operations of a whole warp

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
  // Lines of 128 bytes that requests of global memory touch. L1 looks up one per cycle.
  std::uint64_t lines = 0;
  // Wavefronts of shared loads, if adjacent loads by each lane become one of up to 16 bytes, as
  // nvcc makes them where it unrolls a loop.
  std::uint64_t merged_load_wavefronts = 0;
  // Requests that are no instructions of their own: loads that are merged so, and the second half
  // of cp.async, which counts as a load and a store.
  std::uint64_t merged_requests = 0;
  Distribution load_sectors, shared_load_wavefronts;
  Trips longest;  // of the warp of each block that has most of them, summed over the blocks

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

/// The latencies of one warp, in the order of its requests. Internal to simt/.
class WarpWaits {
 public:
  enum class Load : std::uint8_t { none, shared, cached, memory };

  void load(Load kind) {
    before_ = pending_;
    if (pending_ < kind) pending_ = kind;
  }
  /// The load before was of cp.async, for which the warp does not wait.
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
