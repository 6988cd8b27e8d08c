// SPDX-License-Identifier: Apache-2.0
// Wave quantization: a grid runs in waves of as many blocks as fit on the GPU at once, and the last
// wave may leave SMs idle (the tail effect). All blocks are assumed to take the same time.
#pragma once

#include <cmath>

namespace rung::bench {

struct Waves {
  double capacity = 0;   // blocks resident at once
  double waves = 0;      // blocks / capacity
  double rounds = 0;     // waves rounded up; the time is proportional to it
  double last_wave = 0;  // blocks in the last wave, 1 to capacity
  double waiting = 0;    // blocks that do not start at once

  /// Returns the used fraction of the last wave's capacity.
  [[nodiscard]] double last_wave_used() const { return last_wave / capacity; }
  /// Returns the useful fraction of the time: waves / rounds.
  [[nodiscard]] double efficiency() const { return waves / rounds; }
};

inline Waves waves_of(double blocks, double blocks_per_sm, double sms) {
  Waves result;
  result.capacity = blocks_per_sm * sms;
  result.waves = blocks / result.capacity;
  result.rounds = std::ceil(result.waves);
  result.last_wave = blocks - (result.rounds - 1) * result.capacity;
  result.waiting = blocks > result.capacity ? blocks - result.capacity : 0;
  return result;
}

}  // namespace rung::bench
