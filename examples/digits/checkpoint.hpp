// SPDX-License-Identifier: Apache-2.0
// Checkpoints: everything that a run needs to go on, in a .npz file that NumPy reads. It is
// replaced as a whole: a reader finds the last checkpoint or the one before, whatever ends the
// process.
#pragma once

#include <rung/rung.hpp>

#include <cstdint>
#include <string>

#include "data.hpp"
#include "network.hpp"

namespace digits {

/// Progress of a run, and its settings.
struct Progress {
  std::int64_t epoch = 0;  // done
  std::int64_t step = 0;   // of the optimizer, done
  std::int64_t epochs = 0, batch = 0, seed = 0, shift = 0;
  double rate = 0;
  Scale scale;
};

void save(const std::string& path, const std::string& model, const Progress& progress,
          const Parameters& parameters);

/// Throws rung::Error if the file is none of this model's, is damaged, or its run was started with
/// other settings than `progress` has (where those are not 0).
void restore(const std::string& path, const std::string& model, Progress& progress,
             Parameters& parameters);

}  // namespace digits
