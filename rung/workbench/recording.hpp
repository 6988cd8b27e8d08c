// SPDX-License-Identifier: Apache-2.0
// RAII session of the simulated GPU's recorder.
#pragma once

// Under the address sanitizer kernels have no hooks (cmake/simt.cmake), so the recorder would miss
// part of their work.
#if defined(RUNG_WITH_SIMULATOR) && !defined(__SANITIZE_ADDRESS__)
#define RUNG_WATCHES 1

#include "rung/simt/record.hpp"

namespace rung::workbench {

class Recording {
 public:
  explicit Recording(const simt::record::Options& options) { simt::record::begin(options); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  ~Recording() {
    if (!ended_) (void)simt::record::end();
  }
  simt::record::Report end() {
    ended_ = true;
    return simt::record::end();
  }

 private:
  bool ended_ = false;
};

}  // namespace rung::workbench

#endif
