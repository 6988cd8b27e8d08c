// SPDX-License-Identifier: Apache-2.0
// Trace of a warp's requests of global memory, in order, for the cache model. Internal to simt/.
#pragma once

#include <cstdint>
#include <vector>

namespace rung::simt::record {

/// A run of contiguous or strided sectors of one request, packed in a word. A strided run is
/// followed by a word with its stride.
class SectorRun {
 public:
  // A partial_store writes parts of sectors.
  enum class Kind : std::uint8_t { load, uncached_load, store, partial_store, atomic, barrier };

  SectorRun() = default;
  /// Constructs a run. `first`: address divided by 32; `count`: number of sectors; `continues`:
  /// part of the preceding request; `site`: site number in the launch.
  SectorRun(std::uint64_t first, std::uint64_t count, Kind kind, bool continues, std::uint16_t site,
            bool strided = false)
      : bits_(first << 22 | (count - 1) << 17 | std::uint64_t{site} << 5 |
              std::uint64_t{strided} << 4 | std::uint64_t{continues} << 3 |
              static_cast<std::uint64_t>(kind)) {}
  static SectorRun stride(std::uint64_t sectors) {
    SectorRun run;
    run.bits_ = sectors;
    return run;
  }
  [[nodiscard]] std::uint64_t first() const { return bits_ >> 22; }
  [[nodiscard]] std::uint64_t count() const { return (bits_ >> 17 & 31) + 1; }
  [[nodiscard]] Kind kind() const { return static_cast<Kind>(bits_ & 7); }
  [[nodiscard]] bool continues() const { return (bits_ & 8) != 0; }
  [[nodiscard]] bool strided() const { return (bits_ & 16) != 0; }
  [[nodiscard]] std::uint64_t as_stride() const { return bits_; }
  [[nodiscard]] std::uint16_t site() const { return static_cast<std::uint16_t>(bits_ >> 5 & 4095); }

 private:
  std::uint64_t bits_ = 0;
};
static_assert(sizeof(SectorRun) == 8);

using WarpTrace = std::vector<SectorRun>;

struct BlockTrace {
  std::uint64_t number = 0;  // the block's linear index in the grid
  std::vector<WarpTrace> warps;
};

/// Maximum number of sector runs per launch, over all OS threads (512 MiB). Larger launches are not
/// replayed.
inline constexpr std::uint64_t max_sector_runs = std::uint64_t{1} << 26;

}  // namespace rung::simt::record
